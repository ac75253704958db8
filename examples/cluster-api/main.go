// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// The example prints a line for each ConfigMap that it reconciles, in every cluster of
// Cluster API whose control plane is initialized.
//
//	cluster-api --kubeconfig management.kubeconfig
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	clusterapi "github.com/rollcall-dev/rollcall/providers/cluster-api"
)

func main() {
	if err := run(); err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func run() error {
	var options clusterapi.Options
	flag.StringVar(&options.Namespace, "namespace", "", "`namespace` of the Clusters and their Secrets; empty for all")
	metricsAddress := flag.String("metrics-bind-address", "0", "`address` that serves the metrics, such as :8080; 0 for none")
	logOptions := zap.Options{}
	logOptions.BindFlags(flag.CommandLine)
	klog.InitFlags(flag.CommandLine) // what client-go logs
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logOptions)))
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(ctrl.GetConfigOrDie(), options, os.Stdout, mcmanager.Options{
		Metrics: metricsserver.Options{BindAddress: *metricsAddress},
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager that writes a line for each ConfigMap.
func newManager(management *rest.Config, options clusterapi.Options, out io.Writer, managerOptions mcmanager.Options) (mcmanager.Manager, error) {
	mgr, err := mcmanager.New(management, clusterapi.New(options), managerOptions)
	if err != nil {
		return nil, err
	}
	err = mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			cl, err := mgr.GetCluster(ctx, req.ClusterName)
			if err != nil {
				return ctrl.Result{}, err
			}
			cm := &corev1.ConfigMap{}
			if err := cl.GetClient().Get(ctx, req.NamespacedName, cm); apierrors.IsNotFound(err) {
				fmt.Fprintf(out, "ConfigMap %s in cluster %q is gone\n", req.NamespacedName, req.ClusterName)
				return ctrl.Result{}, nil
			} else if err != nil {
				return ctrl.Result{}, err
			}
			fmt.Fprintf(out, "ConfigMap %s in cluster %q has %d keys\n", req.NamespacedName, req.ClusterName, len(cm.Data))
			return ctrl.Result{}, nil
		}))
	return mgr, err
}
