// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Nop runs a multi-cluster reconciler in single-cluster mode: without a provider's
// clusters, on the manager's local cluster only. It prints a line for each ConfigMap.
//
//	nop --kubeconfig local.kubeconfig
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/providers/nop"
)

func main() {
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func run() error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	// Another provider here makes it a controller for many clusters.
	mgr, err := newManager(ctrl.GetConfigOrDie(), nop.New(), os.Stdout, mcmanager.Options{})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// newManager returns a manager that writes a line for each ConfigMap of the local cluster
// and of the provider's clusters.
func newManager(local *rest.Config, provider multicluster.Provider, out io.Writer, options mcmanager.Options) (mcmanager.Manager, error) {
	mgr, err := mcmanager.New(local, provider, options)
	if err != nil {
		return nil, err
	}
	return mgr, mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}, mcbuilder.WithEngageWithLocalCluster(true), mcbuilder.WithEngageWithProviderClusters(true)).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			cl, err := mgr.GetCluster(ctx, req.ClusterName) // "" is the local cluster
			if err != nil {
				return ctrl.Result{}, err
			}
			cm := &corev1.ConfigMap{}
			if err := cl.GetClient().Get(ctx, req.NamespacedName, cm); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			fmt.Fprintf(out, "ConfigMap %s in cluster %q has %d keys\n", req.NamespacedName, req.ClusterName, len(cm.Data))
			return ctrl.Result{}, nil
		}))
}
