// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Named-reference copies each ConfigMap of the hub that has the annotation
// example.rollcall.dev/cluster-profile to the cluster of the ClusterProfile that the
// annotation names, in the namespace of the ConfigMap.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/clients"
)

// annotation has the name of a ClusterProfile. A real program has a clusterProfileRef
// in the spec of an object. It must check that its author may use profiles of other
// namespaces.
const annotation = "example.rollcall.dev/cluster-profile"

func main() {
	if err := run(); err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func run() error {
	var credentialOptions credentials.Options
	credentialOptions.AddFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New())
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
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := setup(ctx, mgr, resolver); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = v1alpha1.AddToScheme(scheme)
	return scheme
}

// setup adds the clients and the controller to the manager of the hub.
func setup(ctx context.Context, mgr ctrl.Manager, method credentials.Method) error {
	source, err := hub.New(mgr.GetConfig(), hub.Options{Cache: mgr.GetCache()})
	if err != nil {
		return err
	}
	members, err := clients.New(clients.Options{Source: source, Credentials: method})
	if err != nil {
		return err
	}
	if err := mgr.Add(members); err != nil {
		return err
	}
	// A profile that appears, or gets another access, reconciles what refers to it.
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, annotation, func(object client.Object) []string {
		return []string{object.GetAnnotations()[annotation]}
	}); err != nil {
		return err
	}
	referrers := func(ctx context.Context, profile client.Object) (requests []reconcile.Request) {
		var list corev1.ConfigMapList
		if err := mgr.GetClient().List(ctx, &list, client.InNamespace(profile.GetNamespace()), client.MatchingFields{annotation: profile.GetName()}); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list ConfigMaps")
		}
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		WatchesRawSource(members.Events(handler.EnqueueRequestsFromMapFunc(referrers))).
		WithOptions(controller.Options{MaxConcurrentReconciles: 10, ReconciliationTimeout: 10 * time.Second}). // a cluster may hang
		Complete(&copier{hub: mgr.GetClient(), members: members})
}

type copier struct {
	hub     client.Client
	members *clients.Clients
}

func (c *copier) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	original := &corev1.ConfigMap{}
	if err := c.hub.Get(ctx, request.NamespacedName, original); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name, ok := original.Annotations[annotation]
	if !ok {
		return reconcile.Result{}, nil
	}
	member, err := c.members.Client(ctx, types.NamespacedName{Namespace: original.Namespace, Name: name})
	if errors.Is(err, clients.ErrProfileNotFound) {
		ctrl.LoggerFrom(ctx).Info("Waiting for the profile", "error", err.Error())
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	duplicate := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: original.Namespace, Name: original.Name}}
	_, err = controllerutil.CreateOrUpdate(ctx, member, duplicate, func() error {
		duplicate.Data = original.Data
		return nil
	})
	return reconcile.Result{}, err
}
