// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
)

func TestNothingHoldsAClusterThatHasLeft(t *testing.T) {
	for _, tc := range []struct {
		name string
		stay func(context.Context, Gomega, *fakeCluster) (heldBy any)
	}{
		{
			name: "clusters whose context has ended",
			stay: func(ctx context.Context, g Gomega, cl *fakeCluster) any {
				c := clusters.New[*fakeCluster]()
				g.Expect(c.Add(ctx, "eu", cl, nil)).To(Succeed())
				return &c
			},
		},
		{
			name: "clusters that were replaced by another",
			stay: func(ctx context.Context, g Gomega, cl *fakeCluster) any {
				c := clusters.New[*fakeCluster]()
				g.Expect(c.Add(ctx, "eu", cl, nil)).To(Succeed())
				g.Expect(c.AddOrReplace(context.WithoutCancel(ctx), "eu", newFake("other"), nil)).To(Succeed())
				c.Remove("eu")
				return &c
			},
		},
		{
			name: "contexts that vouched for it before it was removed",
			stay: func(ctx context.Context, g Gomega, cl *fakeCluster) any {
				lives, cancel := context.WithCancel(context.WithoutCancel(ctx))
				c := clusters.New[*fakeCluster]()
				g.Expect(c.Add(ctx, "eu", cl, nil)).To(Succeed())
				g.Expect(c.AddOrReplace(lives, "eu", newFake("eu"), nil)).To(Succeed())
				c.Remove("eu")
				return [...]any{&c, lives, cancel}
			},
		},
		{
			name: "a registry whose engagement has ended",
			stay: func(ctx context.Context, g Gomega, cl *fakeCluster) any {
				r := clusters.NewRegistry[*fakeCluster]()
				g.Expect(r.Engage(ctx, "eu", cl)).To(Succeed())
				return r
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, leave := context.WithCancel(t.Context())
			cl := newFake("eu")
			held := weak.Make(cl)
			by := tc.stay(ctx, g, cl)
			leave()
			g.Eventually(func() bool { runtime.GC(); return held.Value() == nil }).Should(BeTrue())
			runtime.KeepAlive(by)
		})
	}
}
