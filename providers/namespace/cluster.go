// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// NamespacedCluster is a cluster that consists of one namespace of another cluster. Its
// clients, caches, indexers and event recorders act in that namespace only.
//
// GetConfig and GetHTTPClient are those of the underlying cluster: clients that a
// program makes of them are not confined.
type NamespacedCluster struct {
	cluster.Cluster // confined, too
	name            string
}

// Name returns the name of the namespace.
func (c *NamespacedCluster) Name() string { return c.name }

// newCluster returns the cluster of a namespace, and a function that removes what it has
// added to the shared cache. Reads of its client take no longer than the limit.
func newCluster(namespace string, shared cluster.Cluster, x *sharedIndexes, limit time.Duration, log logr.Logger) (_ *NamespacedCluster, closeCluster func()) {
	s := &scope{namespace: namespace, scheme: shared.GetScheme(), mapper: shared.GetRESTMapper()}
	own := &indexes{shared: x}
	c := &confinedCluster{Cluster: shared, scope: s, log: log, cache: newCache(s, shared.GetCache(), own)}
	limited := &timeLimited{shared.GetClient(), limit}
	c.client = &NamespacedClient{&confinedClient{Client: shared.GetClient(), reader: &reader{s, limited}, scope: s, indexes: own}}
	return &NamespacedCluster{Cluster: c, name: namespace}, c.cache.close
}

// confinedCluster confines a cluster.Cluster. The embedded one has the methods that do
// not access objects.
type confinedCluster struct {
	cluster.Cluster
	scope  *scope
	log    logr.Logger
	client *NamespacedClient
	cache  *confinedCache
}

func (c *confinedCluster) GetClient() client.Client             { return c.client }
func (c *confinedCluster) GetCache() cache.Cache                { return &NamespacedCache{c.cache} }
func (c *confinedCluster) GetFieldIndexer() client.FieldIndexer { return c.cache }

func (c *confinedCluster) GetAPIReader() client.Reader {
	return &reader{c.scope, c.Cluster.GetAPIReader()}
}

func (c *confinedCluster) GetEventRecorder(name string) recorder.EventRecorder {
	return &eventRecorder{subject{c.scope, c.log}, c.Cluster.GetEventRecorder(name)}
}

func (c *confinedCluster) GetEventRecorderFor(name string) record.EventRecorder {
	shared := c.Cluster.GetEventRecorderFor(name) //nolint:staticcheck // deprecated, but part of the interface
	return &legacyRecorder{subject{c.scope, c.log}, shared}
}

// Start waits until the context ends. The underlying cluster is run by other code.
func (c *confinedCluster) Start(ctx context.Context) error {
	<-ctx.Done()
	c.cache.close()
	return nil
}
