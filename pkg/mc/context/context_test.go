// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package context_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontext "github.com/rollcall-dev/rollcall/pkg/mc/context"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestClusterFrom(t *testing.T) {
	for _, tc := range []struct {
		name   string
		ctx    context.Context
		want   multicluster.ClusterName
		wantOK bool
	}{
		{name: "no cluster", ctx: t.Context()},
		{name: "a cluster", ctx: mccontext.WithCluster(t.Context(), "eu"), want: "eu", wantOK: true},
		{name: "the local cluster", ctx: mccontext.WithCluster(t.Context(), ""), wantOK: true},
		{
			name: "the innermost applies",
			ctx:  mccontext.WithCluster(mccontext.WithCluster(t.Context(), "eu"), "us"), want: "us", wantOK: true,
		},
		{
			name: "the value of another key",
			ctx:  context.WithValue(t.Context(), multicluster.ClusterName("eu"), "us"),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			got, ok := mccontext.ClusterFrom(tc.ctx)
			g.Expect(got).To(Equal(tc.want))
			g.Expect(ok).To(Equal(tc.wantOK))
		})
	}
}

func TestWithClusterKeepsTheContext(t *testing.T) {
	g := NewWithT(t)
	type key struct{}
	parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
	ctx := mccontext.WithCluster(parent, "eu")
	g.Expect(ctx.Value(key{})).To(Equal("value"))
	cause := errors.New("over")
	cancel(cause)
	g.Expect(context.Cause(ctx)).To(MatchError(cause))
}

func TestReconcilerWithClusterInContext(t *testing.T) {
	for _, cluster := range []multicluster.ClusterName{"eu", ""} {
		t.Run("cluster \""+cluster.String()+"\"", func(t *testing.T) {
			g := NewWithT(t)
			bare := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "pod"}}
			result, failure := reconcile.Result{RequeueAfter: time.Minute}, errors.New("failure")
			var single reconcile.Reconciler = reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				g.Expect(req).To(Equal(bare))
				got, ok := mccontext.ClusterFrom(ctx)
				g.Expect(got).To(Equal(cluster))
				g.Expect(ok).To(BeTrue())
				g.Expect(ctx.Done()).To(Equal(t.Context().Done()))
				return result, failure
			})
			gotResult, err := mccontext.ReconcilerWithClusterInContext(single).
				Reconcile(t.Context(), mcreconcile.Request{Request: bare, ClusterName: cluster})
			g.Expect(gotResult).To(Equal(result))
			g.Expect(err).To(MatchError(failure))
		})
	}
}
