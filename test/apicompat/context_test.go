// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apicompat

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

var (
	_ func(context.Context) (multicluster.ClusterName, bool)          = mccontext.ClusterFrom
	_ func(reconcile.Reconciler) mcreconcile.Reconciler               = mccontext.ReconcilerWithClusterInContext
	_ func(context.Context, multicluster.ClusterName) context.Context = mccontext.WithCluster
)
