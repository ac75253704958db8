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
	lookups    *lookups // of this representation
}

func (k *kind[object, request]) WithProjection(project func(cluster.Cluster, object) (object, error)) TypedSyncingSource[object, request] {
	k.project, k.lookups = project, &lookups{}
	return k
}

func (k *kind[object, request]) WithClusterFilter(filter ClusterFilterFunc) TypedSyncingSource[object, request] {
	k.filter = filter
	return k
}

func (k *kind[object, request]) ForCluster(name multicluster.ClusterName, cl cluster.Cluster) (source.TypedSource[request], bool, error) {
	return k.SyncingForCluster(name, cl)
}

func (k *kind[object, request]) SyncingForCluster(name multicluster.ClusterName, cl cluster.Cluster) (_ source.TypedSyncingSource[request], _ bool, err error) {
	defer k.recoverAsError(name, &err)
	if k.filter != nil && !k.filter(name, cl) {
		return &excludedKind[object, request]{kind: *k, clusterName: name, cluster: cl}, false, nil
	}
	src, err := k.watch(name, cl)
	return src, err == nil, err
}

// recoverAsError makes a panic an error. A handler can fail only by a panic, as
// controller-runtime's do when a type is not in the scheme. Such a failure, and one
// of a filter or projection, must affect this cluster only.
func (k *kind[object, request]) recoverAsError(name multicluster.ClusterName, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("cannot watch %T in %s: %v", k.object, describe(name), r)
	}
}

// watch returns the source of a cluster.
func (k *kind[object, request]) watch(name multicluster.ClusterName, cl cluster.Cluster) (_ source.TypedSyncingSource[request], err error) {
	defer k.recoverAsError(name, &err)
	obj := k.object
	if k.project != nil {
		obj, err = k.project(cl, obj)
		if err != nil {
			return nil, fmt.Errorf("projection of %T failed for %s: %w", k.object, describe(name), err)
		}
	}
	informers := newDetachingCache(cl, k.lookups)
	return &clusterKind[request]{
		TypedSyncingSource: source.TypedKind(informers, obj, k.handler(name, cl), k.predicates...),
		clusterName:        name,
		cluster:            cl,
		object:             obj,
		informers:          informers,
	}, nil
}

func (k *kind[object, request]) String() string {
	return fmt.Sprintf("multi-cluster kind source: %T", k.object)
}

// excludedKind is the source of a cluster that the filter excludes. A caller that
// starts it regardless watches the cluster. Until then no handler is made.
type excludedKind[object client.Object, request mcreconcile.ClusterAware[request]] struct {
	kind        kind[object, request]
	clusterName multicluster.ClusterName
	cluster     cluster.Cluster
	started     source.TypedSyncingSource[request]
}

func (k *excludedKind[object, request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	src, err := k.kind.watch(k.clusterName, k.cluster)
	if err != nil {
		return err
	}
	k.started = src
	return src.Start(ctx, queue)
}

func (k *excludedKind[object, request]) WaitForSync(ctx context.Context) error {
	if k.started == nil {
		return fmt.Errorf("%v was not started", k)
	}
	return k.started.WaitForSync(ctx)
}

func (k *excludedKind[object, request]) String() string {
	return fmt.Sprintf("kind source: %T in %s, excluded", k.kind.object, describe(k.clusterName))
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
