// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Namespace treats the namespaces with the label tenant=true as clusters: in each of them
// it keeps a copy of the ConfigMap settings. Its reconciler names no namespace.
//
//	namespace --kubeconfig cluster.kubeconfig
package main

import (
	"context"
	"flag"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/providers/namespace"
)

func main() {
	flag.Parse()
	ctrl.SetLogger(zap.New())
	mgr, err := newManager(ctrl.GetConfigOrDie(), mcmanager.Options{})
	if err == nil {
		err = mgr.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func newManager(config *rest.Config, options mcmanager.Options) (mcmanager.Manager, error) {
	cl, err := cluster.New(config)
	if err != nil {
		return nil, err
	}
	provider := namespace.NewWithOptions(cl, namespace.Options{Selector: labels.SelectorFromSet(labels.Set{"tenant": "true"})})
	mgr, err := mcmanager.New(config, provider, options)
	if err != nil {
		return nil, err
	}
	if err := mgr.GetLocalManager().Add(cl); err != nil { // runs the cluster
		return nil, err
	}
	return mgr, mcbuilder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(&copier{mgr})
}

type copier struct{ mgr mcmanager.Manager }

// Reconcile copies the ConfigMap settings.
func (c *copier) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	if req.Name != "settings" {
		return ctrl.Result{}, nil
	}
	cl, err := c.mgr.GetCluster(ctx, req.ClusterName)
	if err != nil {
		return ctrl.Result{}, err
	}
	tenant := cl.GetClient()
	original := &corev1.ConfigMap{}
	if err := tenant.Get(ctx, client.ObjectKey{Name: "settings"}, original); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// Without a namespace, it is in that of the tenant.
	backup := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings-copy"}}
	_, err = controllerutil.CreateOrUpdate(ctx, tenant, backup, func() error {
		backup.Data = original.Data
		return nil
	})
	return ctrl.Result{}, err
}
