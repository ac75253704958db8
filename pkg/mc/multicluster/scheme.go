// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
)

type schemeKey struct{}

// WithScheme returns a context that carries the scheme. The manager starts its
// provider with a context that carries the manager's scheme.
func WithScheme(ctx context.Context, scheme *runtime.Scheme) context.Context {
	return context.WithValue(ctx, schemeKey{}, scheme)
}

// SchemeFrom returns the scheme that the context carries, nil if there is none.
// Providers create their clusters with it, so that a program registers its
// kinds once.
func SchemeFrom(ctx context.Context) *runtime.Scheme {
	scheme, _ := ctx.Value(schemeKey{}).(*runtime.Scheme)
	return scheme
}
