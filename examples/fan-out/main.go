// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Fan-out writes the Deployment of each Rollout of a hub to the members that its selector
// selects, and collects their status in the Rollout. A Rollout is deleted when its
// Deployments are gone, also that of a member that is down.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
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
	flag.Parse()
	ctrl.SetLogger(zap.New())
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case credentialOptions.ProviderFile == "":
		return errors.New("--clusterprofile-provider-file must be given")
	}
	resolver, err := credentials.New(credentialOptions)
	if err != nil {
		return err
	}
	defer resolver.Close()
	mgr, err := newManager(ctrl.GetConfigOrDie(), resolver, mcmanager.Options{})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = v1alpha1.AddToScheme(scheme)
	scheme.AddKnownTypes(groupVersion, &Rollout{}, &RolloutList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	return scheme
}

func newManager(hub *rest.Config, method credentials.Method, options mcmanager.Options) (mcmanager.Manager, error) {
	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{Credentials: method})
	if err != nil {
		return nil, err
	}
	options.Scheme = newScheme()
	mgr, err := mcmanager.New(hub, provider, options)
	if err != nil {
		return nil, err
	}
	f := &fanOut{mgr: mgr, hub: mgr.GetLocalManager(), engaged: clusters.NewRegistry[cluster.Cluster]()}
	if err := mgr.Add(f.engaged); err != nil {
		return nil, err
	}
	rollouts := handler.TypedFuncs[*Rollout, request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*Rollout], q queue) { enqueue(q, nil, e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*Rollout], q queue) {
			enqueue(q, e.ObjectOld, e.ObjectNew)
		},
	}
	profiles := handler.TypedFuncs[*v1alpha1.ClusterProfile, request]{
		DeleteFunc: func(ctx context.Context, _ event.TypedDeleteEvent[*v1alpha1.ClusterProfile], q queue) {
			for _, req := range f.requestsFor(ctx, "") {
				q.Add(req)
			}
		},
	}
	return mgr, mcbuilder.ControllerManagedBy(mgr).Named("fan-out").
		WatchesRawSource(source.TypedKind(f.hub.GetCache(), &Rollout{}, rollouts)).
		WatchesRawSource(source.TypedKind(f.hub.GetCache(), &v1alpha1.ClusterProfile{}, profiles)).
		WatchesRawSource(mcsource.TypedClusterLifecycle(func(ctx context.Context, e mcsource.ClusterEvent) []request {
			return append(f.requestsFor(ctx, ""), f.requestsFor(ctx, e.ClusterName)...)
		})).
		Watches(&appsv1.Deployment{}, mchandler.EnqueueRequestsFromMapFunc(ofRollout)).
		// A member that hangs has a worker for 10 s at most, and leaves the others to other members.
		WithOptions(mccontroller.Options{MaxConcurrentReconciles: 8, ReconciliationTimeout: 10 * time.Second}).
		Complete(f)
}
