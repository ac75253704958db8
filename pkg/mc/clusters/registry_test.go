// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

var _ mcmanager.Runnable = &clusters.Registry[cluster.Cluster]{}

func TestRegistry(t *testing.T) {
	for _, r := range []*clusters.Registry[*fakeCluster]{{}, clusters.NewRegistry[*fakeCluster]()} {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		eu, us := newFake("eu"), newFake("us")
		g.Expect(r.ClusterNames()).To(BeEmpty())
		g.Expect(r.Add(ctx, "us", us)).To(Succeed())
		g.Expect(r.Add(ctx, "eu", eu)).To(Succeed())
		cancel() // without an effect on the clusters

		g.Expect(r.Get(t.Context(), "eu")).To(BeIdenticalTo(eu))
		g.Expect(r.GetTyped(t.Context(), "us")).To(BeIdenticalTo(us))
		g.Expect(r.ClusterNames()).To(HaveExactElements(multicluster.ClusterName("eu"), multicluster.ClusterName("us")))
		g.Expect(eu.starts()).To(BeZero())

		r.Remove("eu")
		r.Remove("unknown")
		_, err := r.Get(t.Context(), "eu")
		g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
		_, err = r.GetTyped(t.Context(), "eu")
		g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
		g.Expect(r.ClusterNames()).To(HaveExactElements(multicluster.ClusterName("us")))
	}
}

func TestRegistryErrors(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name string
		call func(context.Context, *clusters.Registry[*fakeCluster]) error
		err  any
	}{
		{
			name: "a second cluster of a name",
			call: func(ctx context.Context, r *clusters.Registry[*fakeCluster]) error {
				return r.Add(ctx, "eu", newFake("eu"))
			},
			err: clusters.ErrClusterExists,
		},
		{
			name: "to add no cluster",
			call: func(ctx context.Context, r *clusters.Registry[*fakeCluster]) error { return r.Add(ctx, "us", nil) },
			err:  ContainSubstring("must not be nil"),
		},
		{
			name: "to replace by no cluster",
			call: func(ctx context.Context, r *clusters.Registry[*fakeCluster]) error {
				return r.AddOrReplace(ctx, "eu", nil)
			},
			err: ContainSubstring("must not be nil"),
		},
		{
			name: "to add with a context that has ended",
			call: func(_ context.Context, r *clusters.Registry[*fakeCluster]) error {
				return r.Add(ended, "us", newFake("us"))
			},
			err: context.Canceled,
		},
		{
			name: "to be engaged with no cluster",
			call: func(ctx context.Context, r *clusters.Registry[*fakeCluster]) error {
				return r.Engage(ctx, "us", (*fakeCluster)(nil))
			},
			err: ContainSubstring("must not be nil"),
		},
		{
			name: "to be engaged with a cluster of another type",
			call: func(ctx context.Context, r *clusters.Registry[*fakeCluster]) error {
				return r.Engage(ctx, "us", &configured{})
			},
			err: ContainSubstring("is a *clusters_test.configured, not a *clusters_test.fakeCluster"),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			r := clusters.NewRegistry[*fakeCluster]()
			eu := newFake("eu")
			g.Expect(r.Add(t.Context(), "eu", eu)).To(Succeed())
			g.Expect(tc.call(t.Context(), r)).To(MatchError(tc.err))
			g.Expect(r.ClusterNames()).To(HaveExactElements(multicluster.ClusterName("eu")))
			g.Expect(r.Get(t.Context(), "eu")).To(BeIdenticalTo(eu))
		})
	}
}

func TestRegistryEquality(t *testing.T) {
	g := NewWithT(t)
	r := &clusters.Registry[*fakeCluster]{}
	first, equal, other := newFake("a"), newFake("a"), newFake("b")
	g.Expect(r.AddOrReplace(t.Context(), "eu", first)).To(Succeed())
	g.Expect(r.AddOrReplace(t.Context(), "eu", equal)).To(Succeed())
	g.Expect(r.Get(t.Context(), "eu")).To(BeIdenticalTo(first))
	g.Expect(r.AddOrReplace(t.Context(), "eu", other)).To(Succeed())
	g.Expect(r.Get(t.Context(), "eu")).To(BeIdenticalTo(other))

	r.RemoveIfEqual("eu", first)
	r.RemoveIfEqual("unknown", first)
	g.Expect(r.Get(t.Context(), "eu")).To(BeIdenticalTo(other))
	r.EqualClusters = func(_, _ *fakeCluster) bool { return true }
	r.RemoveIfEqual("eu", first)
	g.Expect(r.ClusterNames()).To(BeEmpty())
}

func TestRegistryEngage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := clusters.NewRegistry[cluster.Cluster]()
		ctx, leave := context.WithCancel(t.Context())
		eu := newFake("eu")
		g.Expect(r.Engage(ctx, "eu", eu)).To(Succeed())
		g.Expect(r.Get(t.Context(), "eu")).To(BeIdenticalTo(eu))

		leave()
		// Before any cleanup has run.
		_, err := r.Get(t.Context(), "eu")
		g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
		g.Expect(r.ClusterNames()).To(BeEmpty())
		g.Expect(r.Add(t.Context(), "eu", newFake("eu"))).To(Succeed(), "the name is free")
		synctest.Wait()
		g.Expect(r.ClusterNames()).To(HaveLen(1))
	})
}

func TestRegistryEngageAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := clusters.NewRegistry[cluster.Cluster]()
		first, leaveFirst := context.WithCancel(t.Context())
		second, leaveSecond := context.WithCancel(t.Context())
		eu := newFake("eu")
		g.Expect(r.Engage(first, "eu", eu)).To(Succeed())
		g.Expect(r.Engage(second, "eu", eu)).To(Succeed())
		leaveFirst()
		synctest.Wait()
		g.Expect(r.Get(t.Context(), "eu")).To(BeIdenticalTo(eu))
		leaveSecond()
		synctest.Wait()
		g.Expect(r.ClusterNames()).To(BeEmpty())
	})
}

func TestRegistryAddAfterEngage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		r := clusters.NewRegistry[*fakeCluster]()
		ctx, leave := context.WithCancel(t.Context())
		engaged := newFake("eu")
		g.Expect(r.Engage(ctx, "eu", engaged)).To(Succeed())
		g.Expect(r.AddOrReplace(t.Context(), "eu", newFake("eu"))).To(Succeed())
		leave()
		synctest.Wait()
		g.Expect(r.Get(t.Context(), "eu")).To(BeIdenticalTo(engaged))
		r.Remove("eu")
		g.Expect(r.ClusterNames()).To(BeEmpty())
	})
}

func TestRegistryForEach(t *testing.T) {
	g := NewWithT(t)
	r := clusters.NewRegistry[*fakeCluster]()
	for _, name := range []multicluster.ClusterName{"c", "a", "b"} {
		g.Expect(r.Add(t.Context(), name, newFake(name.String()))).To(Succeed())
	}
	var visited []string
	err := r.ForEach(func(name multicluster.ClusterName, cl *fakeCluster) error {
		visited = append(visited, cl.host)
		r.Remove("c") // the function may use the registry
		if name == "b" {
			return errFake
		}
		return nil
	})
	g.Expect(err).To(BeIdenticalTo(errFake))
	g.Expect(visited).To(HaveExactElements("a", "b"))
	g.Expect(r.ForEach(func(multicluster.ClusterName, *fakeCluster) error { return nil })).To(Succeed())
}

func TestRegistryStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var runnable manager.Runnable = clusters.NewRegistry[cluster.Cluster]()
		ctx, cancel := context.WithCancel(t.Context())
		result := inBackground(func() error { return runnable.Start(ctx) })
		g.Expect(result).NotTo(Receive())
		cancel()
		g.Expect(<-result).To(Succeed())
	})
}

func TestRegistryRace(t *testing.T) {
	g := NewWithT(t)
	r := clusters.NewRegistry[*fakeCluster]()
	var racing sync.WaitGroup
	for i := range 32 {
		cl := newFake(string(rune('a' + i%3)))
		racing.Go(func() { _ = r.AddOrReplace(t.Context(), "eu", cl) })
		racing.Go(func() { r.RemoveIfEqual("eu", cl) })
		racing.Go(func() { _ = r.Engage(t.Context(), "us", cl) })
		racing.Go(func() { _, _ = r.Get(t.Context(), "eu"); r.ClusterNames() })
	}
	racing.Wait()
	last := newFake("last")
	g.Expect(r.AddOrReplace(t.Context(), "eu", last)).To(Succeed())
	g.Expect(r.Get(t.Context(), "eu")).To(BeIdenticalTo(last))
	g.Expect(r.ClusterNames()).To(HaveLen(2))
}
