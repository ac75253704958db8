// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Multi reconciles the clusters of two providers: those of the kubeconfigs that are its
// arguments, such as given#eu for eu.kubeconfig, and the namespaces of the local cluster,
// such as tenant#blue. One controller has all of them, another one only the namespaces.
//
//	multi --kubeconfig local.kubeconfig eu.kubeconfig us.kubeconfig
package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/providers/clusters"
	"github.com/rollcall-dev/rollcall/providers/multi"
	"github.com/rollcall-dev/rollcall/providers/namespace"
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
	given := map[string]*rest.Config{}
	for _, path := range flag.Args() {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return err
		}
		given[strings.TrimSuffix(filepath.Base(path), ".kubeconfig")] = config
	}
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(ctx, ctrl.GetConfigOrDie(), given, mcmanager.Options{HealthProbeBindAddress: ":8081"})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager of the local cluster and of the given ones, by name.
func newManager(ctx context.Context, local *rest.Config, given map[string]*rest.Config, options mcmanager.Options) (mcmanager.Manager, error) {
	home, err := cluster.New(local)
	if err != nil {
		return nil, err
	}
	tenants, others := namespace.New(home), clusters.New()
	for name, config := range given {
		cl, err := cluster.New(config)
		if err != nil {
			return nil, err
		}
		if err := others.Add(ctx, multicluster.ClusterName(name), cl); err != nil {
			return nil, err
		}
	}

	provider := multi.New(multi.Options{})
	if err := provider.AddProvider("tenant", tenants); err != nil {
		return nil, err
	}
	if err := provider.AddProvider("given", others); err != nil {
		return nil, err
	}
	mgr, err := mcmanager.New(local, provider, options)
	if err != nil {
		return nil, err
	}
	if err := mgr.GetLocalManager().Add(home); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("clusters", provider.ReadyCheck(0.9)); err != nil {
		return nil, err
	}

	err = mcbuilder.ControllerManagedBy(mgr).Named("all").For(&corev1.ConfigMap{}).Complete(logger("Found"))
	if err != nil {
		return nil, err
	}
	return mgr, mcbuilder.ControllerManagedBy(mgr).Named("tenants").
		For(&corev1.ConfigMap{}, mcbuilder.WithClustersFromProvider(ctx, tenants)).
		Complete(logger("Found in a tenant"))
}

// logger returns a reconciler that logs its requests.
func logger(message string) mcreconcile.Func {
	return func(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
		log.FromContext(ctx).Info(message, "request", req.String())
		return ctrl.Result{}, nil
	}
}
