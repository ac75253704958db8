// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestGuardNeedsKnownCaches(t *testing.T) {
	g := NewWithT(t)
	_, err := fleet.New(fleet.Options{
		Source: newFakeSource(), Connector: fakeConnector{}, Connection: fleet.ConnectionOptions{MaxCacheAge: time.Minute},
	})
	g.Expect(err).To(MatchError(ContainSubstring("MaxCacheAge cannot be used with a Connector")))

	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, withMaxCacheAge, func(o *fleet.Options) {
		o.Connection.ClusterOptions = append(o.Connection.ClusterOptions, func(o *cluster.Options) {
			o.Cache.NewInformer = toolscache.NewSharedIndexInformer
		})
	})
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(func() fleet.Reason { return env.status("fleet/eu").Reason }).Should(Equal(fleet.SetupFailed))
	g.Expect(env.status("fleet/eu").LastError).To(ContainSubstring("do not replace Cache.NewInformer"))
}

// Without MaxCacheAge, clients are what they are without a fleet.
func TestNoGuardCostsNothing(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	g.Expect(c.Create(configMap("x"))).To(Succeed())
	_, plain := engaged(t, g, c)
	_, guarded := engaged(t, g, c, withMaxCacheAge)
	allocs := func(ctx context.Context, cl cluster.Cluster) float64 {
		reader, into := cl.GetClient(), &corev1.ConfigMap{}
		return testing.AllocsPerRun(200, func() {
			if err := reader.Get(ctx, key("x"), into); err != nil {
				t.Error(err)
			}
		})
	}
	ctx := reconcileOf(t)
	off := allocs(ctx, plain)
	g.Expect(off).To(BeNumerically("~", allocs(t.Context(), plain), 1))
	g.Expect(allocs(ctx, guarded)).To(BeNumerically("<=", off+2))
	t.Logf("%v allocations without, %v with a guard", off, allocs(ctx, guarded))
}
