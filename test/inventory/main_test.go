// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package inventory tests sources and synthetic profiles on a real API server
// with the APIs' own CRDs: one control plane for all tests.
package inventory

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

const (
	// assetsVariable names the folder with kube-apiserver and etcd.
	assetsVariable = "KUBEBUILDER_ASSETS"

	patience = time.Minute
)

var hubPlane *realfleet.ControlPlane

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(assetsVariable) == "" {
		fmt.Printf("skipped: no real control plane, since %s is not set; use make test\n", assetsVariable)
		return
	}
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "rollcall-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	hubPlane, err = realfleet.StartControlPlane(ctx, "hub", os.Getenv(assetsVariable), dir)
	if err == nil {
		defer func() {
			if err := hubPlane.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
		err = installCRDs(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot set up the control plane:", err)
		return 1
	}
	return m.Run()
}

// installCRDs installs ClusterProfile and PlacementDecision as they are shipped.
func installCRDs(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api").Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(hubPlane.Config, envtest.CRDInstallOptions{
		Paths:              []string{filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "bases")},
		ErrorIfPathMissing: true,
		MaxTime:            patience,
	})
	return err
}
