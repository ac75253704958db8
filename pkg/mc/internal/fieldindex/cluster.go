// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fieldindex

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Cluster is a cluster whose cache and client add indexes when a List uses them.
type Cluster struct {
	cluster.Cluster
	indexer *indexer
}

// New returns the cluster with the indexes of a set and those added with
// GetFieldIndexer. The name is for errors.
func New(cl cluster.Cluster, name string, shared *Set) *Cluster {
	return &Cluster{Cluster: cl, indexer: newIndexer(cl, name, shared)}
}

// GetCache implements cluster.Cluster.
func (c *Cluster) GetCache() cache.Cache {
	return indexedCache{Cache: c.Cluster.GetCache(), indexer: c.indexer}
}

// GetClient implements cluster.Cluster.
func (c *Cluster) GetClient() client.Client {
	return indexedClient{Client: c.Cluster.GetClient(), indexer: c.indexer}
}

// GetFieldIndexer implements cluster.Cluster. Its indexes are those of this cluster
// alone.
func (c *Cluster) GetFieldIndexer() client.FieldIndexer { return c.indexer }

type indexedCache struct {
	cache.Cache
	indexer *indexer
}

// List implements client.Reader.
func (c indexedCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.indexer.list(ctx, c.Cache, list, opts)
}

// IndexField implements client.FieldIndexer.
func (c indexedCache) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	return c.indexer.IndexField(ctx, obj, field, extractValue)
}

// RemoveInformer implements cache.Informers. Indexes are removed with the informer.
func (c indexedCache) RemoveInformer(ctx context.Context, obj client.Object) error {
	err := c.Cache.RemoveInformer(ctx, obj)
	c.indexer.forget(obj)
	return err
}

type indexedClient struct {
	client.Client
	indexer *indexer
}

// List implements client.Reader.
func (c indexedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.indexer.list(ctx, c.Client, list, opts)
}
