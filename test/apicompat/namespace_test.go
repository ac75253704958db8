// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/namespace"
)

var (
	_ = namespace.NamespacedCache{Cache: cache.Cache(nil)}
	_ = namespace.NamespacedClient{Client: client.Client(nil)}
	_ = namespace.NamespacedCluster{Cluster: cluster.Cluster(nil)}
	_ = namespace.ScopedInformer{Informer: cache.Informer(nil)}
)

func _() {
	type (
		ctx       = context.Context
		object    = client.Object
		provider  = *namespace.Provider
		cached    = *namespace.NamespacedCache
		clustered = *namespace.NamespacedCluster
		informer  = *namespace.ScopedInformer
		handler   = toolscache.ResourceEventHandler
		handle    = toolscache.ResourceEventHandlerRegistration
	)
	is[func(cluster.Cluster) provider](namespace.New)
	is[func(provider, ctx, multicluster.ClusterName) (cluster.Cluster, error)](provider.Get)
	is[func(provider, ctx, object, string, client.IndexerFunc) error](provider.IndexField)
	is[func(provider, ctx, multicluster.Aware) error](provider.Start)
	is[func(provider, ctx, mcmanager.Manager) error](provider.Run)

	is[func(cached, ctx, client.ObjectKey, object, ...client.GetOption) error](cached.Get)
	is[func(cached, ctx, object, ...cache.InformerGetOption) (cache.Informer, error)](cached.GetInformer)
	is[func(cached, ctx, schema.GroupVersionKind, ...cache.InformerGetOption) (cache.Informer, error)](cached.GetInformerForKind)
	is[func(cached, ctx, client.ObjectList, ...client.ListOption) error](cached.List)
	is[func(cached, ctx, object) error](cached.RemoveInformer)

	is[func(clustered) client.Reader](clustered.GetAPIReader)
	is[func(clustered) cache.Cache](clustered.GetCache)
	is[func(clustered) client.Client](clustered.GetClient)
	is[func(clustered, string) recorder.EventRecorder](clustered.GetEventRecorder)
	is[func(clustered, string) record.EventRecorder](clustered.GetEventRecorderFor) //nolint:staticcheck // deprecated, but part of the interface
	is[func(clustered) string](clustered.Name)
	is[func(clustered, ctx) error](clustered.Start)

	is[func(informer, handler) (handle, error)](informer.AddEventHandler)
	is[func(informer, handler, toolscache.HandlerOptions) (handle, error)](informer.AddEventHandlerWithOptions)
	is[func(informer, handler, time.Duration) (handle, error)](informer.AddEventHandlerWithResyncPeriod)
	is[func(informer, toolscache.Indexers) error](informer.AddIndexers)
}

func _() {
	type (
		ctx    = context.Context
		object = client.Object
		list   = client.ObjectList
		apply  = runtime.ApplyConfiguration
		whole  = *namespace.NamespacedClient
		sub    = namespace.SubResourceNamespacedClient
	)
	is[func(whole, ctx, apply, ...client.ApplyOption) error](whole.Apply)
	is[func(whole, ctx, object, ...client.CreateOption) error](whole.Create)
	is[func(whole, ctx, object, ...client.DeleteOption) error](whole.Delete)
	is[func(whole, ctx, object, ...client.DeleteAllOfOption) error](whole.DeleteAllOf)
	is[func(whole, ctx, client.ObjectKey, object, ...client.GetOption) error](whole.Get)
	is[func(whole, ctx, list, ...client.ListOption) error](whole.List)
	is[func(whole, ctx, object, client.Patch, ...client.PatchOption) error](whole.Patch)
	is[func(whole) client.SubResourceWriter](whole.Status)
	is[func(whole, string) client.SubResourceClient](whole.SubResource)
	is[func(whole, ctx, object, ...client.UpdateOption) error](whole.Update)

	is[func(sub, ctx, apply, ...client.SubResourceApplyOption) error](sub.Apply)
	is[func(sub, ctx, object, object, ...client.SubResourceCreateOption) error](sub.Create)
	is[func(sub, ctx, object, object, ...client.SubResourceGetOption) error](sub.Get)
	is[func(sub, ctx, object, client.Patch, ...client.SubResourcePatchOption) error](sub.Patch)
	is[func(sub, ctx, object, ...client.SubResourceUpdateOption) error](sub.Update)
}
