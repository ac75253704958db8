// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Own-provider has a provider of its own, once as a source of a fleet (source.go) and once
// without a fleet (provider.go). It prints a line for each ConfigMap in the clusters of
// the kubeconfigs in a folder, such as eu for eu.kubeconfig.
//
//	own-provider --dir clusters
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func main() {
	if err := run(); err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", ".", "`folder` with files *.kubeconfig")
	withoutFleet := flag.Bool("without-fleet", false, "use the provider without a fleet")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	provider, err := newProvider(*dir, 10*time.Second, *withoutFleet)
	if err != nil {
		return err
	}
	mgr, err := newManager(provider, os.Stdout, mcmanager.Options{})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// newProvider returns a provider of the clusters of a folder, which it reads at intervals.
func newProvider(dir string, every time.Duration, withoutFleet bool) (multicluster.Provider, error) {
	first := make(chan struct{}, 1)
	first <- struct{}{}
	list := func(ctx context.Context) (map[string]*rest.Config, error) {
		select {
		case <-first:
		case <-time.After(every):
		case <-ctx.Done():
		}
		return kubeconfigs(dir)
	}
	if withoutFleet {
		return &provider{list: list}, nil
	}
	return newFleet(&source{list: list})
}

// newFleet returns a provider of the clusters of a source.
func newFleet(s *source) (*fleet.Fleet, error) {
	f, err := fleet.New(fleet.Options{Source: s, Credentials: s})
	if err != nil {
		return nil, err
	}
	s.recheck = f.Recheck
	return f, nil
}

// kubeconfigs returns the clusters of a folder.
func kubeconfigs(dir string) (map[string]*rest.Config, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	configs := map[string]*rest.Config{}
	for _, file := range files {
		name, found := strings.CutSuffix(file.Name(), ".kubeconfig")
		if !found {
			continue
		}
		if configs[name], err = clientcmd.BuildConfigFromFlags("", filepath.Join(dir, file.Name())); err != nil {
			return nil, err
		}
	}
	return configs, nil
}

// newManager returns a manager that writes a line for each ConfigMap.
func newManager(provider multicluster.Provider, out io.Writer, options mcmanager.Options) (mcmanager.Manager, error) {
	mgr, err := mcmanager.New(&rest.Config{}, provider, options) // without a local cluster
	if err != nil {
		return nil, err
	}
	return mgr, mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			fmt.Fprintf(out, "ConfigMap %s in cluster %q\n", req.NamespacedName, req.ClusterName)
			return ctrl.Result{}, nil
		}))
}
