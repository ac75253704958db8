// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package clusterinventory tests the way from a hub's ClusterProfiles to
// reconciles on real control planes: one hub and two members for all tests.
package clusterinventory

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

// assetsVariable names the folder with kube-apiserver and etcd.
const assetsVariable = "KUBEBUILDER_ASSETS"

// What all tests share. Each enlists the members that it needs.
var (
	hub          *realfleet.Hub
	east, west   *realfleet.Member
	pluginDir    string
	pluginConfig string // kubeconfig for the plugin
	logged       = &text{}
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(assetsVariable) == "" {
		fmt.Printf("skipped: no real control planes, since %s is not set; use make test\n", assetsVariable)
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// All there is to log, to see that no token is ever in it. From 9 on,
	// client-go times connections, with a data race of its own; the quickstart
	// looks for tokens at the highest verbosity.
	logger := funcr.New(logged.add, funcr.Options{Verbosity: 8})
	log.SetLogger(logger)
	klogFlags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(klogFlags)
	_ = klogFlags.Set("v", "8")
	klog.SetLogger(logger)

	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "rollcall-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	stop, err := setUp(ctx, dir)
	defer stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot set up the control planes:", err)
		return 1
	}
	return m.Run()
}

// setUp starts the control planes and builds the plugin. What it has started
// is to be stopped also after an error.
func setUp(ctx context.Context, dir string) (stop func(), err error) {
	var mu sync.Mutex
	var planes []*realfleet.ControlPlane
	stop = func() {
		var group errgroup.Group
		for _, cp := range planes {
			group.Go(cp.Stop)
		}
		if err := group.Wait(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control planes:", err)
		}
	}
	start := func(name string) (*realfleet.ControlPlane, error) {
		cp, err := realfleet.StartControlPlane(ctx, name, os.Getenv(assetsVariable), dir)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			planes = append(planes, cp)
		}
		return cp, err
	}

	var group errgroup.Group
	group.Go(func() error {
		crd, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api")
		if err != nil {
			return err
		}
		cp, err := start("hub")
		if err != nil {
			return err
		}
		hub, err = realfleet.NewHub(ctx, cp, filepath.Join(crd, "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml"))
		return err
	})
	for name, member := range map[string]**realfleet.Member{"east": &east, "west": &west} {
		group.Go(func() error {
			cp, err := start(name)
			if err != nil {
				return err
			}
			*member, err = realfleet.NewMember(ctx, cp)
			return err
		})
	}
	pluginDir = dir
	group.Go(func() error {
		_, err := output(ctx, "go", "build", "-o", dir+string(filepath.Separator),
			"github.com/rollcall-dev/rollcall/plugins/token-secret/cmd/mc-credential-token-secret")
		return err
	})
	if err := group.Wait(); err != nil {
		return stop, err
	}
	token, err := hub.IssueToken(ctx, hub.PluginAccount, nil)
	if err != nil {
		return stop, err
	}
	pluginConfig = filepath.Join(dir, "plugin.kubeconfig")
	return stop, hub.WriteKubeconfig(pluginConfig, token)
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// text is what has been written to it.
type text struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (t *text) add(prefix, args string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(&t.all, prefix, args)
}

func (t *text) contains(s string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Contains(t.all.Bytes(), []byte(s))
}
