// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/sources"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// Kind watches the objects of a kind in every cluster.
func Kind[object client.Object](
	obj object,
	handler mchandler.TypedEventHandlerFunc[object, mcreconcile.Request],
	predicates ...predicate.TypedPredicate[object],
) SyncingSource[object] {
	return TypedKind(obj, handler, predicates...)
}

// TypedKind watches the objects of a kind in every cluster, for controllers of
// any request type.
func TypedKind[object client.Object, request mcreconcile.ClusterAware[request]](
	obj object,
	handler mchandler.TypedEventHandlerFunc[object, request],
	predicates ...predicate.TypedPredicate[object],
) TypedSyncingSource[object, request] {
	return &kind[object, request]{object: obj, handler: handler, predicates: predicates, lookups: &lookups{}}
}

// kind is the multi-cluster source of a kind.
type kind[object client.Object, request mcreconcile.ClusterAware[request]] struct {
	object     object
	handler    mchandler.TypedEventHandlerFunc[object, request]
	predicates []predicate.TypedPredicate[object]
	project    func(cluster.Cluster, object) (object, error)
	filter     ClusterFilterFunc
	lookups    *lookups // shared by copies that watch the same representation
}

func (k *kind[object, request]) WithProjection(project func(cluster.Cluster, object) (object, error)) TypedSyncingSource[object, request] {
	projected := *k
	projected.project = project
	projected.lookups = &lookups{}
	return &projected
}

func (k *kind[object, request]) WithClusterFilter(filter ClusterFilterFunc) TypedSyncingSource[object, request] {
	filtered := *k
	filtered.filter = filter
	return &filtered
}

func (k *kind[object, request]) ForCluster(name multicluster.ClusterName, cl cluster.Cluster) (source.TypedSource[request], bool, error) {
	return k.SyncingForCluster(name, cl)
}

func (k *kind[object, request]) SyncingForCluster(name multicluster.ClusterName, cl cluster.Cluster) (_ source.TypedSyncingSource[request], _ bool, err error) {
	// A handler can fail only by a panic, as controller-runtime's do when a type is
	// not in the scheme. Such a failure, and one of a filter or projection, must
	// affect this cluster only.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot watch %T in %s: %v", k.object, describe(name), r)
		}
	}()
	if k.filter != nil && !k.filter(name, cl) {
		return nil, false, nil
	}
	obj := k.object
	if k.project != nil {
		obj, err = k.project(cl, obj)
		if err != nil {
			return nil, false, fmt.Errorf("projection of %T failed for %s: %w", k.object, describe(name), err)
		}
	}
	informers := newDetachingCache(cl, k.lookups)
	return &clusterKind[request]{
		TypedSyncingSource: source.TypedKind(informers, obj, k.handler(name, cl), k.predicates...),
		clusterName:        name,
		cluster:            cl,
		object:             obj,
		informers:          informers,
	}, true, nil
}

func (k *kind[object, request]) String() string {
	return fmt.Sprintf("multi-cluster kind source: %T", k.object)
}

// clusterKind is the Kind source of one cluster. Unlike controller-runtime's Kind,
// it removes its event handler from the informer when its context ends, since the
// cache of a cluster may outlive an engagement.
type clusterKind[request mcreconcile.ClusterAware[request]] struct {
	source.TypedSyncingSource[request]
	clusterName multicluster.ClusterName
	cluster     cluster.Cluster
	object      client.Object
	informers   *detachingCache
}

var _ sources.Diagnosed = &clusterKind[mcreconcile.Request]{}

func (k *clusterKind[request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	k.informers.detachOnEnd(ctx)
	return k.TypedSyncingSource.Start(mccontext.WithCluster(ctx, k.clusterName), queue)
}

func (k *clusterKind[request]) String() string {
	return fmt.Sprintf("%v in %s", k.TypedSyncingSource, describe(k.clusterName))
}

// describe returns the cluster for messages.
func describe(name multicluster.ClusterName) string {
	if name.Empty() {
		return "the local cluster"
	}
	return fmt.Sprintf("cluster %q", name)
}
