// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package basic_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/manager/coordinator/basic"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// A component that is added while a cluster is replaced must be engaged with the
// new one last.
func TestAddAwareWhileClusterIsReplaced(t *testing.T) {
	for _, tc := range []struct {
		name string
		// during is the cluster during whose Engage the other one is replaced.
		during multicluster.ClusterName
	}{
		{"before Engage with the old cluster", "other"},
		{"during Engage with the old cluster", "eu"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := basic.New()
			before, after := &fakeCluster{}, &fakeCluster{}
			g.Expect(c.Engage(t.Context(), "eu", before)).To(Succeed())
			// The first of many names is hardly ever eu.
			if tc.during == "other" {
				for i := range 64 {
					g.Expect(c.Engage(t.Context(), multicluster.ClusterName(fmt.Sprint("other-", i)), &fakeCluster{})).To(Succeed())
				}
			}
			replaced := false
			comp := &component{engage: func(e engagement) {
				if !replaced && (tc.during == "eu") == (e.name == "eu") {
					replaced = true
					g.Expect(c.Engage(t.Context(), "eu", after)).To(Succeed())
				}
			}}
			c.AddAware(comp)
			var engaged []cluster.Cluster
			for _, e := range comp.engagements() {
				if e.name == "eu" {
					engaged = append(engaged, e.cluster)
				}
			}
			g.Expect(engaged[len(engaged)-1]).To(BeIdenticalTo(after))
			if tc.during == "eu" {
				g.Expect(engaged).To(HaveLen(2), "each once")
			} else {
				g.Expect(len(engaged)).To(BeNumerically("<=", 2), "eu may have been the first")
			}

			again := &fakeCluster{}
			g.Expect(c.Engage(t.Context(), "eu", again)).To(Succeed())
			g.Expect(last(comp, "eu")).To(BeIdenticalTo(again), "as usual")
		})
	}
}

// last returns the last cluster of that name that a component was engaged with.
func last(comp *component, name multicluster.ClusterName) cluster.Cluster {
	var cl cluster.Cluster
	for _, e := range comp.engagements() {
		if e.name == name {
			cl = e.cluster
		}
	}
	return cl
}

func TestAddAwareRacesWithReplacements(t *testing.T) {
	g := NewWithT(t)
	const n, rounds = 8, 50
	c := basic.New()
	components := make([]*component, n)
	final := make([]cluster.Cluster, n)
	var wg sync.WaitGroup
	for i := range n {
		components[i] = &component{engage: func(engagement) { runtime.Gosched() }}
		wg.Go(func() {
			for range i * 5 {
				runtime.Gosched()
			}
			c.AddAware(components[i])
		})
		wg.Go(func() {
			for range rounds {
				final[i] = &fakeCluster{}
				if err := c.Engage(t.Context(), multicluster.ClusterName(fmt.Sprint(i)), final[i]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, comp := range components {
		times := map[cluster.Cluster]int{}
		for _, e := range comp.engagements() {
			times[e.cluster]++
		}
		g.Expect(times).To(HaveEach(1))
		for i, cl := range final {
			g.Expect(last(comp, multicluster.ClusterName(fmt.Sprint(i)))).To(BeIdenticalTo(cl))
		}
	}
}

func TestEngageIsRepeated(t *testing.T) {
	g := NewWithT(t)
	c, eu, early := basic.New(), &fakeCluster{}, &component{}
	c.AddAware(early)
	g.Expect(c.Engage(t.Context(), "eu", eu)).To(Succeed())
	g.Expect(c.Engage(t.Context(), "eu", eu)).To(Succeed())
	g.Expect(early.engagements()).To(HaveLen(2), "it may have failed the first time")
	late := &component{}
	c.AddAware(late)
	g.Expect(late.engagements()).To(HaveLen(1))
}

func TestSameClusterInTwoEngagements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, eu := basic.New(), &fakeCluster{}
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", eu)).To(Succeed())
		g.Expect(c.Engage(t.Context(), "eu", eu)).To(Succeed())
		leave()
		synctest.Wait()
		late := &component{}
		c.AddAware(late)
		g.Expect(late.engagements()).To(HaveLen(1))
	})
}
