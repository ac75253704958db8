// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

// assetsVariable names the folder with kube-apiserver and etcd.
const assetsVariable = "KUBEBUILDER_ASSETS"

// controlPlanes are real ones: a hub with the CRDs of the inventory API, and two
// members, each of which the tests add to the hub where they need it.
type controlPlanes struct {
	start sync.Once
	err   error // of start

	dir          string // has the plugin and the files of the control planes
	hub          *realfleet.Hub
	east, west   *realfleet.Member
	pluginConfig string // kubeconfig for the plugin

	mu      sync.Mutex // guards running
	running []*realfleet.ControlPlane
}

// planes are started by the first test that needs them.
var planes controlPlanes

// realPlanes returns the control planes that all tests share.
func realPlanes(t *testing.T) *controlPlanes {
	t.Helper()
	if os.Getenv(assetsVariable) == "" {
		t.Skipf("no real control planes, because %s is not set; use make test", assetsVariable)
	}
	logs.capture(t)
	planes.start.Do(func() { planes.err = planes.setUp() })
	if planes.err != nil {
		t.Fatal("cannot set up the control planes: ", planes.err)
	}
	return &planes
}

// setUp starts the control planes and builds the plugin.
func (p *controlPlanes) setUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var err error
	if p.dir, err = os.MkdirTemp("", "rollcall-test-"); err != nil {
		return err
	}
	var group errgroup.Group
	group.Go(func() error {
		module, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api")
		if err != nil {
			return err
		}
		cp, err := p.startControlPlane(ctx, "hub")
		if err != nil {
			return err
		}
		crds := filepath.Join(module, "config", "crd", "bases")
		p.hub, err = realfleet.NewHub(ctx, cp, filepath.Join(crds, "multicluster.x-k8s.io_clusterprofiles.yaml"))
		if err != nil {
			return err
		}
		_, err = envtest.InstallCRDs(cp.Config, envtest.CRDInstallOptions{Paths: []string{crds}, ErrorIfPathMissing: true, MaxTime: time.Minute})
		return err
	})
	for name, member := range map[string]**realfleet.Member{"east": &p.east, "west": &p.west} {
		group.Go(func() error {
			cp, err := p.startControlPlane(ctx, name)
			if err != nil {
				return err
			}
			*member, err = realfleet.NewMember(ctx, cp)
			return err
		})
	}
	group.Go(func() error {
		_, err := output(ctx, "go", "build", "-o", p.dir+string(filepath.Separator),
			"github.com/rollcall-dev/rollcall/plugins/token-secret/cmd/mc-credential-token-secret")
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	token, err := p.hub.IssueToken(ctx, p.hub.PluginAccount, nil)
	if err != nil {
		return err
	}
	p.pluginConfig = filepath.Join(p.dir, "plugin.kubeconfig")
	return p.hub.WriteKubeconfig(p.pluginConfig, token)
}

func (p *controlPlanes) startControlPlane(ctx context.Context, name string) (*realfleet.ControlPlane, error) {
	cp, err := realfleet.StartControlPlane(ctx, name, os.Getenv(assetsVariable), p.dir)
	if err == nil {
		p.add(cp)
	}
	return cp, err
}

// add lets stop stop the control plane.
func (p *controlPlanes) add(cp *realfleet.ControlPlane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = append(p.running, cp)
}

// stop stops what has been started, also if setUp has failed.
func (p *controlPlanes) stop() error {
	var group errgroup.Group
	for _, cp := range p.running {
		group.Go(cp.Stop)
	}
	for _, m := range []*realfleet.Member{p.east, p.west, trusting.north, trusting.south} {
		if m != nil && m.Network != nil {
			m.Network.Close()
		}
	}
	err := group.Wait()
	if p.dir != "" {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	return err
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
