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

func TestClusterIsCollectedAfterItLeaves(t *testing.T) {
	for _, tc := range []struct {
		name string
		hold func(context.Context, Gomega, *fakeCluster) (by any)
	}{
		{
			name: "the context has ended",
			hold: func(ctx context.Context, g Gomega, cl *fakeCluster) any {
				c := clusters.New[*fakeCluster]()
				g.Expect(c.Add(ctx, "eu", cl, nil)).To(Succeed())
				return &c
			},
		},
		{
			name: "replaced by another cluster",
			hold: func(ctx context.Context, g Gomega, cl *fakeCluster) any {
				c := clusters.New[*fakeCluster]()
				g.Expect(c.Add(ctx, "eu", cl, nil)).To(Succeed())
				g.Expect(c.AddOrReplace(context.WithoutCancel(ctx), "eu", newFake("other"), nil)).To(Succeed())
				c.Remove("eu")
				return &c
			},
		},
		{
			name: "removed while another owner's context lives",
			hold: func(ctx context.Context, g Gomega, cl *fakeCluster) any {
				lives, cancel := context.WithCancel(context.WithoutCancel(ctx))
				c := clusters.New[*fakeCluster]()
				g.Expect(c.Add(ctx, "eu", cl, nil)).To(Succeed())
				g.Expect(c.AddOrReplace(lives, "eu", newFake("eu"), nil)).To(Succeed())
				c.Remove("eu")
				return [...]any{&c, lives, cancel}
			},
		},
		{
			name: "the engagement with a registry has ended",
			hold: func(ctx context.Context, g Gomega, cl *fakeCluster) any {
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
			by := tc.hold(ctx, g, cl)
			leave()
			g.Eventually(func() bool { runtime.GC(); return held.Value() == nil }).Should(BeTrue())
			runtime.KeepAlive(by)
		})
	}
}
