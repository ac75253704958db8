// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package parking lets a reconciler that wraps another one hand a request back
// to its controller until a cluster is engaged.
package parking

import (
	"context"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

type key struct{}

// Func parks the request that is being reconciled until the cluster is
// engaged, and tells whether there was room for it.
type Func func(multicluster.ClusterName) bool

// With returns a context for the reconcile of a request that can be parked.
func With(ctx context.Context, park Func) context.Context {
	return context.WithValue(ctx, key{}, park)
}

// Park parks the request that the context is for. It returns false if that
// cannot be done.
func Park(ctx context.Context, until multicluster.ClusterName) bool {
	park, ok := ctx.Value(key{}).(Func)
	return ok && park(until)
}
