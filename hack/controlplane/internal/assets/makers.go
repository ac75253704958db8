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

// KubernetesModule is the module whose version selects the binaries.
const KubernetesModule = "k8s.io/kubernetes"

const (
	apiServerPackage    = KubernetesModule + "/cmd/kube-apiserver"
	kubectlPackage      = KubernetesModule + "/cmd/kubectl"
	etcdPackage         = "go.etcd.io/etcd/server/v3"
	setupEnvtestPackage = "sigs.k8s.io/controller-runtime/tools/setup-envtest"
)

// Build is the Maker that builds binaries from source.
type Build struct {
	// Module requires Kubernetes and etcd.
	Module pinned.Module
	// Version is the version that the API server and kubectl report: that of
	// Kubernetes in Module.
	Version string
	// Report prints each step.
	Report *progress.Reporter
}

// Make implements [Maker].
func (b *Build) Make(ctx context.Context, dir string, names []string) error {
	for _, name := range names {
		pkg, title, duration := apiServerPackage, name+" "+b.Version, "a few minutes the first time"
		flags := versionFlags(b.Version)
		switch name {
		case etcd:
			pkg, title, duration, flags = etcdPackage, name, "about 30 s the first time", nil
		case kubectl:
			pkg, duration = kubectlPackage, "about a minute the first time"
		}
		err := b.Report.Step("building "+title, duration, func() error {
			return b.Module.Build(ctx, pkg, filepath.Join(dir, name), flags...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// versionFlags returns the linker flags that set the version of kube-apiserver and
// kubectl, which is otherwise v0.0.0-master.
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

// Download is the Maker that downloads the binaries with setup-envtest. It fails
// without access to the internet.
type Download struct {
	// Module requires setup-envtest.
	Module pinned.Module
	// Version is the version of Kubernetes. The latest patch release of its minor
	// version is downloaded.
	Version string
	// Timeout limits the download, not including the build of setup-envtest.
	Timeout time.Duration
	// Report prints each step.
	Report *progress.Reporter
}

// Make implements [Maker].
func (d *Download) Make(ctx context.Context, dir string, names []string) error {
	title := "downloading " + strings.Join(names, ", ") + " of Kubernetes " + minor(d.Version)
	return d.Report.Step(title, fmt.Sprintf("up to %v", d.Timeout), func() error {
		return d.download(ctx, dir, names)
	})
}

func (d *Download) download(ctx context.Context, dir string, names []string) error {
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
	for _, name := range names {
		if err := os.Rename(filepath.Join(strings.TrimSpace(string(out)), name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
