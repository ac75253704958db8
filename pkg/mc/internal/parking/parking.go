// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package parking lets a reconciler park its request: the controller enqueues the
// request again when a cluster is engaged.
package parking

import (
	"context"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

type key struct{}

// Func parks the current request until the cluster is engaged. It returns false if
// too many requests are parked.
type Func func(multicluster.ClusterName) bool

// With returns a context for the reconcile of a request that can be parked.
func With(ctx context.Context, park Func) context.Context {
	return context.WithValue(ctx, key{}, park)
}

// Park parks the request of the context. It returns false if that is not possible.
func Park(ctx context.Context, until multicluster.ClusterName) bool {
	park, ok := ctx.Value(key{}).(Func)
	return ok && park(until)
}
