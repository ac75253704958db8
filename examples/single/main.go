// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Single runs a multi-cluster reconciler on one cluster, which has the name "home": it
// adds the cluster's name to each ConfigMap with the label stamp=true.
//
//	single --kubeconfig home.kubeconfig
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/providers/single"
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
	mgr, err := newManager(ctrl.GetConfigOrDie(), mcmanager.Options{})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func newManager(config *rest.Config, options mcmanager.Options) (mcmanager.Manager, error) {
	home, err := cluster.New(config)
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.New(config, single.New("home", home), options)
	if err != nil {
		return nil, err
	}
	if err := mgr.GetLocalManager().Add(home); err != nil { // runs the cluster
		return nil, err
	}
	return mgr, mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(&stamper{mgr})
}

type stamper struct{ mgr mcmanager.Manager }

// Reconcile sets the key "cluster". It works for any number of clusters.
func (s *stamper) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	cl, err := s.mgr.GetCluster(ctx, req.ClusterName)
	if err != nil {
		return ctrl.Result{}, err
	}
	cm := &corev1.ConfigMap{}
	if err := cl.GetClient().Get(ctx, req.NamespacedName, cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	name := req.ClusterName.String()
	if cm.Labels["stamp"] != "true" || cm.Data["cluster"] == name {
		return ctrl.Result{}, nil
	}
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	cm.Data["cluster"] = name
	return ctrl.Result{}, cl.GetClient().Update(ctx, cm)
}
