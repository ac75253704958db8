// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// checkAll returns the first error in the arguments of the builder.
func (blder *TypedBuilder[request]) checkAll(watches []WatchesInput[request]) error {
	for _, in := range watches {
		if err := in.check(); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(blder.globalPredicates, identity.IsNil[predicate.Predicate]) {
		return errors.New("the predicate of WithEventFilter must not be nil")
	}
	if slices.ContainsFunc(blder.rawSources, identity.IsNil[source.TypedSource[request]]) {
		return errors.New("the source of WatchesRawSource must not be nil")
	}
	if len(blder.rawSources) > 0 || slices.ContainsFunc(watches, blder.watchesACluster) {
		return nil
	}
	return fmt.Errorf("%s(%T) watches no cluster: use WithEngageWithLocalCluster(true) or WithEngageWithProviderClusters(true), or watch something else",
		watches[0].method, watches[0].object)
}

func (in *WatchesInput[request]) check() error {
	switch {
	case identity.IsNil(in.object):
		return fmt.Errorf("%s(...): the object must not be nil", in.method)
	case in.handler == nil:
		return fmt.Errorf("the handler for %T must not be nil", in.object)
	case slices.ContainsFunc(in.predicates, identity.IsNil[predicate.Predicate]):
		return fmt.Errorf("%s(%T): the predicates must not be nil", in.method, in.object)
	default:
		return in.err
	}
}

// engages reports whether the clusters of the provider and the local cluster are
// watched.
func (blder *TypedBuilder[request]) engages(in WatchesInput[request]) (provider, local bool) {
	hasProvider := blder.mgr.GetProvider() != nil
	return ptr.Deref(in.engageWithProviderClusters, hasProvider), ptr.Deref(in.engageWithLocalCluster, !hasProvider)
}

func (blder *TypedBuilder[request]) watchesACluster(in WatchesInput[request]) bool {
	provider, local := blder.engages(in)
	return provider || local
}

// checkedHandler returns the handler function with an error message for clusters
// without a handler.
func (in *WatchesInput[request]) checkedHandler() mchandler.TypedEventHandlerFunc[client.Object, request] {
	return func(name multicluster.ClusterName, cl cluster.Cluster) handler.TypedEventHandler[client.Object, request] {
		h := in.handler(name, cl)
		if h == nil {
			// The source returns the panic as an error of the cluster.
			panic(fmt.Sprintf("the function of %s(%T) returned no handler", in.method, in.object))
		}
		return h
	}
}
