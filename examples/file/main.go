// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// The example prints a line for each ConfigMap that it reconciles, in every cluster that
// is a context of a kubeconfig file.
//
//	file --dir /etc/clusters
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
	"github.com/rollcall-dev/rollcall/providers/file"
)

func main() {
	if err := run(); err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func run() error {
	var options file.Options
	flag.Func("file", "`path` of a kubeconfig; may be repeated", func(path string) error {
		options.KubeconfigFiles = append(options.KubeconfigFiles, path)
		return nil
	})
	flag.Func("dir", "`folder` with kubeconfigs; may be repeated (default without --file: $KUBECONFIG, ~/.kube/config and the working directory)", func(dir string) error {
		options.KubeconfigDirs = append(options.KubeconfigDirs, dir)
		return nil
	})
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
	// The manager's own cluster is not used, and need not exist.
	mgr, err := newManager(&rest.Config{}, options, os.Stdout, mcmanager.Options{
		Metrics: metricsserver.Options{BindAddress: *metricsAddress},
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager that writes a line for each ConfigMap.
func newManager(local *rest.Config, options file.Options, out io.Writer, managerOptions mcmanager.Options) (mcmanager.Manager, error) {
	provider, err := file.New(options)
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.New(local, provider, managerOptions)
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
