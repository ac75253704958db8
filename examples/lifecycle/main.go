// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Lifecycle records in the hub, as Events of ClusterProfiles, when clusters are engaged and
// disengaged, and when their labels change.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
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

func newManager(hub *rest.Config, method credentials.Method, options mcmanager.Options) (mcmanager.Manager, error) {
	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{Credentials: method})
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.New(hub, provider, options)
	if err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(mgr.GetLocalManager().GetScheme()); err != nil {
		return nil, err
	}
	recorder := mgr.GetLocalManager().GetEventRecorder("lifecycle")
	r := &reporter{mgr: mgr, engaged: map[multicluster.ClusterName]*inventory.Profile{}, report: func(p *inventory.Profile, reason, note string) {
		recorder.Eventf(p, nil, corev1.EventTypeNormal, reason, "Reconcile", "%s", note)
	}}
	return mgr, mcbuilder.ControllerManagedBy(mgr).Named("lifecycle").
		WatchesRawSource(mcsource.ClusterLifecycle()).
		// By default, the request of a disengaged cluster ends with ErrClusterNotFound.
		WithClusterNotFoundWrapper(false).
		Complete(r)
}

// reporter compares clusters with what it has reported: several events may be one request.
type reporter struct {
	mgr    mcmanager.Manager
	report func(profile *inventory.Profile, reason, note string)

	mu      sync.Mutex // guards engaged
	engaged map[multicluster.ClusterName]*inventory.Profile
}

func (r *reporter) Reconcile(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
	var after *inventory.Profile // nil: it is not engaged
	cl, err := r.mgr.GetCluster(ctx, req.ClusterName)
	if err == nil {
		after, _ = fleet.ProfileFrom(cl)
	} else if !errors.Is(err, multicluster.ErrClusterNotFound) {
		return ctrl.Result{}, err
	}
	r.mu.Lock()
	before := r.engaged[req.ClusterName]
	if after != nil {
		r.engaged[req.ClusterName] = after
	} else {
		delete(r.engaged, req.ClusterName)
	}
	r.mu.Unlock()
	switch {
	case before == nil && after != nil:
		r.report(after, "Engaged", "Controllers reconcile the cluster")
	case before != nil && after == nil:
		r.report(before, "Disengaged", "Controllers no longer reconcile the cluster")
	case before != nil && !maps.Equal(before.Labels, after.Labels):
		r.report(after, "LabelsChanged", fmt.Sprintf("The labels of the cluster are %v", after.Labels))
	}
	return ctrl.Result{}, nil
}
