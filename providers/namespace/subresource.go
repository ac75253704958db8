// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SubResourceNamespacedClient is the client of a subresource of objects of a namespace.
// Subresources of cluster-scoped objects can be read, not written.
type SubResourceNamespacedClient struct {
	shared client.SubResourceClient
	scope  *scope
}

var _ client.SubResourceClient = SubResourceNamespacedClient{}

// Get reads the subresource of an object.
func (s SubResourceNamespacedClient) Get(ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceGetOption) error {
	_, namespaced, err := s.scope.kindOf(obj)
	if err == nil && namespaced {
		err = s.scope.own(obj)
	}
	if err != nil {
		return err
	}
	return s.shared.Get(ctx, obj, subResource, opts...)
}

// Create creates the subresource of an object.
func (s SubResourceNamespacedClient) Create(ctx context.Context, obj, subResource client.Object, opts ...client.SubResourceCreateOption) error {
	if err := errors.Join(s.scope.own(obj), s.scope.body(subResource)); err != nil {
		return err
	}
	return s.shared.Create(ctx, obj, subResource, opts...)
}

// Update updates the subresource of an object.
func (s SubResourceNamespacedClient) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	options := client.SubResourceUpdateOptions{}
	options.ApplyOptions(opts)
	if err := errors.Join(s.scope.own(obj), s.scope.body(options.SubResourceBody)); err != nil {
		return err
	}
	return s.shared.Update(ctx, obj, opts...)
}

// Patch patches the subresource of an object.
func (s SubResourceNamespacedClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	options := client.SubResourcePatchOptions{}
	options.ApplyOptions(opts)
	if err := errors.Join(s.scope.own(obj), s.scope.body(options.SubResourceBody)); err != nil {
		return err
	}
	return s.shared.Patch(ctx, obj, patch, opts...)
}

// Apply applies the subresource of an object.
func (s SubResourceNamespacedClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	options := client.SubResourceApplyOptions{}
	options.ApplyOpts(opts)
	if err := errors.Join(s.scope.ownApply(obj), s.scope.bodyApply(options.SubResourceBody)); err != nil {
		return err
	}
	return s.shared.Apply(ctx, obj, opts...)
}
