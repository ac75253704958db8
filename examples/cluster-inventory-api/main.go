// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// The example prints a line for each ConfigMap that it reconciles, in every
// cluster that has a ClusterProfile in a hub.
//
//	cluster-inventory-api --kubeconfig hub.kubeconfig \
//	  --clusterprofile-provider-file providers.json
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

func main() {
	if err := run(); err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func run() error {
	var credentialOptions credentials.Options
	credentialOptions.AddFlags(flag.CommandLine)
	logOptions := zap.Options{}
	logOptions.BindFlags(flag.CommandLine)
	klog.InitFlags(flag.CommandLine) // what client-go logs
	metricsAddress := flag.String("metrics-bind-address", "0", "`address` that serves the metrics, such as :8080; 0 for none")
	trustedNamespaces := flag.String("trusted-namespaces", "", "comma-separated `namespaces` of the hub whose profiles may take each other's place")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logOptions)))
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case credentialOptions.ProviderFile == "":
		return errors.New("--clusterprofile-provider-file must be given")
	}
	ctx := ctrl.SetupSignalHandler()

	resolver, err := credentials.New(credentialOptions)
	if err != nil {
		return err
	}
	defer resolver.Close()
	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{
		Credentials:       resolver,
		TrustedNamespaces: strings.Split(*trustedNamespaces, ","),
	})
	if err != nil {
		return err
	}

	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, mcmanager.Options{
		Metrics: metricsserver.Options{BindAddress: *metricsAddress},
	})
	if err != nil {
		return err
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
				fmt.Printf("ConfigMap %s in cluster %q is gone\n", req.NamespacedName, req.ClusterName)
				return ctrl.Result{}, nil
			} else if err != nil {
				return ctrl.Result{}, err
			}
			fmt.Printf("ConfigMap %s in cluster %q has %d keys\n", req.NamespacedName, req.ClusterName, len(cm.Data))
			return ctrl.Result{}, nil
		}))
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
