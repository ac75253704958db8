// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// limitReads makes reads of a client with read-your-writes consistency end after the limit:
// on a cluster that fails they would wait for the client's own writes, and hold their
// workers, until the cluster recovers. So does what writes wait for before they are sent.
func limitReads(o *cluster.Options, name multicluster.ClusterName, limit time.Duration) {
	newClient := o.NewClient
	if newClient == nil {
		newClient = client.New
	}
	o.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
		if options.Cache == nil || !ptr.Deref(options.Cache.EnableReadYourWritesConsistency, false) {
			return newClient(config, options)
		}
		if informers, ok := options.Cache.Reader.(cache.Informers); ok {
			cacheOptions := *options.Cache
			cacheOptions.Reader = &limitedInformers{Reader: cacheOptions.Reader, Informers: informers, name: name, limit: limit}
			options.Cache = &cacheOptions
		}
		c, err := newClient(config, options)
		if err != nil {
			return nil, err
		}
		return &limitedClient{Client: c, name: name, limit: limit}, nil
	}
}

// limitedInformers limits how long the client waits for an informer, which it needs for
// reads and before the first write of a kind. The write itself has no limit.
type limitedInformers struct {
	client.Reader
	cache.Informers
	name  multicluster.ClusterName
	limit time.Duration
}

// GetInformer implements cache.Informers.
func (i *limitedInformers) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	limited, cancel := context.WithTimeout(ctx, i.limit)
	defer cancel()
	informer, err := i.Informers.GetInformer(limited, obj, opts...)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return nil, fmt.Errorf("cluster %q: the cache of %T did not sync within %v (ConnectTimeout): %w", i.name, obj, i.limit, err)
	}
	return informer, err
}

// limitedClient limits the duration of reads.
type limitedClient struct {
	client.Client
	name  multicluster.ClusterName
	limit time.Duration
}

// Get implements client.Reader.
func (c *limitedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.read(ctx, func(ctx context.Context) error { return c.Client.Get(ctx, key, obj, opts...) })
}

// List implements client.Reader.
func (c *limitedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.read(ctx, func(ctx context.Context) error { return c.Client.List(ctx, list, opts...) })
}

func (c *limitedClient) read(ctx context.Context, read func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	err := read(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("cluster %q: a read with read-your-writes consistency did not end within %v (ConnectTimeout): %w", c.name, c.limit, err)
	}
	return err
}
