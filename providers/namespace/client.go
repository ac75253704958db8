// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NamespacedClient is the client of a namespace. It reads and writes objects of that
// namespace; objects without a namespace get it, objects of others are an
// ErrOutsideNamespace. Cluster-scoped objects can be read, not written.
type NamespacedClient struct {
	client.Client // confined, too
}

var _ client.WithWatch = &NamespacedClient{}

// Watch implements client.WithWatch if the client of the underlying cluster does.
func (n *NamespacedClient) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	c, ok := n.Client.(*confinedClient)
	if !ok {
		return nil, fmt.Errorf("the client %T is not that of a namespace", n.Client)
	}
	return c.watch(ctx, list, opts)
}

// timeLimited limits the duration of the reads of a client: those with read-your-writes
// consistency wait for the client's own writes, which the cache of a cluster that fails
// does not have before it recovers.
type timeLimited struct {
	client.Reader
	limit time.Duration
}

func (r *timeLimited) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.read(ctx, func(ctx context.Context) error { return r.Reader.Get(ctx, key, obj, opts...) })
}

func (r *timeLimited) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.read(ctx, func(ctx context.Context) error { return r.Reader.List(ctx, list, opts...) })
}

func (r *timeLimited) read(ctx context.Context, read func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	err := read(limited)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the cluster of the namespaces did not return within %v (ConnectTimeout): %w", r.limit, err)
	}
	return err
}

// reader confines a client.Reader.
type reader struct {
	scope  *scope
	shared client.Reader
}

func (r *reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	key, err := r.scope.key(key, obj)
	if err != nil {
		return err
	}
	return r.shared.Get(ctx, key, obj, opts...)
}

func (r *reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	opts, err := r.scope.list(list, opts)
	if err != nil {
		return err
	}
	return r.shared.List(ctx, list, opts...)
}

// confinedClient confines a client.Client. The embedded one has the methods that send
// no request.
type confinedClient struct {
	client.Client
	reader  client.Reader // confined
	scope   *scope
	indexes *indexes
}

func (c *confinedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.reader.Get(ctx, key, obj, opts...)
}

func (c *confinedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.indexes.usable(list, c.scope, opts); err != nil {
		return err
	}
	return c.reader.List(ctx, list, opts...)
}

func (c *confinedClient) watch(ctx context.Context, list client.ObjectList, opts []client.ListOption) (watch.Interface, error) {
	watcher, ok := c.Client.(client.WithWatch)
	if !ok {
		return nil, fmt.Errorf("the client %T of the cluster cannot watch: use an informer of the cache", c.Client)
	}
	opts, err := c.scope.list(list, opts)
	if err != nil {
		return nil, err
	}
	return watcher.Watch(ctx, list, opts...)
}

func (c *confinedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := c.scope.own(obj); err != nil {
		return err
	}
	return c.Client.Create(ctx, obj, opts...)
}

func (c *confinedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if err := c.scope.own(obj); err != nil {
		return err
	}
	return c.Client.Update(ctx, obj, opts...)
}

func (c *confinedClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := c.scope.own(obj); err != nil {
		return err
	}
	return c.Client.Patch(ctx, obj, patch, opts...)
}

func (c *confinedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := c.scope.own(obj); err != nil {
		return err
	}
	return c.Client.Delete(ctx, obj, opts...)
}

func (c *confinedClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	gvk, namespaced, err := c.scope.kindOf(obj)
	if err != nil {
		return err
	}
	if !namespaced {
		return c.scope.clusterScoped(gvk.Kind, obj.GetName())
	}
	options := client.DeleteAllOfOptions{}
	options.ApplyOptions(opts)
	for _, namespace := range []string{obj.GetNamespace(), options.Namespace} {
		if err := c.scope.check("all of", gvk.Kind, namespace); err != nil {
			return err
		}
	}
	return c.Client.DeleteAllOf(ctx, obj, append(slices.Clip(opts), client.InNamespace(c.scope.namespace))...)
}

func (c *confinedClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := c.scope.ownApply(obj); err != nil {
		return err
	}
	return c.Client.Apply(ctx, obj, opts...)
}

func (c *confinedClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *confinedClient) SubResource(subResource string) client.SubResourceClient {
	return SubResourceNamespacedClient{shared: c.Client.SubResource(subResource), scope: c.scope}
}
