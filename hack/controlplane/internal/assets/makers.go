// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/hack/controlplane/internal/pinned"
	"github.com/rollcall-dev/rollcall/hack/controlplane/internal/progress"
)

// KubernetesModule is the module whose pinned version decides on everything.
const KubernetesModule = "k8s.io/kubernetes"

const (
	apiServerPackage    = KubernetesModule + "/cmd/kube-apiserver"
	etcdPackage         = "go.etcd.io/etcd/server/v3"
	setupEnvtestPackage = "sigs.k8s.io/controller-runtime/tools/setup-envtest"
)

// Build is the Maker that compiles both binaries from source.
type Build struct {
	// Module requires Kubernetes and etcd.
	Module pinned.Module
	// Version is what the API server calls itself: the version of Kubernetes
	// that Module requires.
	Version string
	// Report hears of each step.
	Report *progress.Reporter
}

// Make implements [Maker].
func (b *Build) Make(ctx context.Context, dir string) error {
	err := b.Report.Step("building etcd", "about 30 s the first time", func() error {
		return b.Module.Build(ctx, etcdPackage, filepath.Join(dir, etcd))
	})
	if err != nil {
		return err
	}
	return b.Report.Step("building kube-apiserver "+b.Version, "some minutes the first time", func() error {
		return b.Module.Build(ctx, apiServerPackage, filepath.Join(dir, apiServer), versionFlags(b.Version)...)
	})
}

// versionFlags are the linker flags without which kube-apiserver reports
// v0.0.0-master.
func versionFlags(version string) []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(minor(version), "v"), ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, set := range []string{"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor, "gitCommit="} {
			flags = append(flags, "-X", pkg+"."+set)
		}
	}
	return flags
}

// Download is the Maker that has setup-envtest fetch the binaries. It fails
// wherever there is no way to the internet, which is no reason to worry.
type Download struct {
	// Module requires setup-envtest.
	Module pinned.Module
	// Version is the version of Kubernetes; the newest patch release of its
	// minor one is downloaded.
	Version string
	// Timeout is how long the download may take, without the time to build
	// setup-envtest.
	Timeout time.Duration
	// Report hears of each step.
	Report *progress.Reporter
}

// Make implements [Maker].
func (d *Download) Make(ctx context.Context, dir string) error {
	words := "downloading kube-apiserver " + minor(d.Version) + " and etcd"
	return d.Report.Step(words, fmt.Sprintf("up to %v", d.Timeout), func() error {
		return d.download(ctx, dir)
	})
}

func (d *Download) download(ctx context.Context, dir string) error {
	tool := filepath.Join(dir, "setup-envtest")
	if err := d.Module.Build(ctx, setupEnvtestPackage, tool); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	cmd := pinned.Command(ctx, tool, "use", "--bin-dir", dir, "--print", "path",
		strings.TrimPrefix(minor(d.Version), "v")+".x!")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("setup-envtest: %w", err)
	}
	for _, name := range []string{etcd, apiServer} {
		if err := os.Rename(filepath.Join(strings.TrimSpace(string(out)), name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
