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

// A component that is added while a cluster is replaced must not be left with
// the one that was.
func TestAComponentAddedWhileANameIsEngagedAgainEndsUpWithTheSuccessor(t *testing.T) {
	for _, tc := range []struct {
		name string
		// when the successor comes: as the component is told of this cluster
		during multicluster.ClusterName
	}{
		{"before it is told of the one that was", "other"},
		{"while it is told of the one that was", "eu"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := basic.New()
			before, after := &fakeCluster{}, &fakeCluster{}
			g.Expect(c.Engage(t.Context(), "eu", before)).To(Succeed())
			// Whichever of many names comes first, it is not eu.
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
			var told []cluster.Cluster
			for _, e := range comp.engagements() {
				if e.name == "eu" {
					told = append(told, e.cluster)
				}
			}
			g.Expect(told[len(told)-1]).To(BeIdenticalTo(after))
			if tc.during == "eu" {
				g.Expect(told).To(HaveLen(2), "of each once")
			} else {
				g.Expect(len(told)).To(BeNumerically("<=", 2), "by chance, eu was the first of all")
			}

			again := &fakeCluster{}
			g.Expect(c.Engage(t.Context(), "eu", again)).To(Succeed())
			g.Expect(last(comp, "eu")).To(BeIdenticalTo(again), "and what comes later as ever")
		})
	}
}

// last returns the cluster of that name that a component was told of last.
func last(comp *component, name multicluster.ClusterName) cluster.Cluster {
	var cl cluster.Cluster
	for _, e := range comp.engagements() {
		if e.name == name {
			cl = e.cluster
		}
	}
	return cl
}

func TestComponentsAddedWhileNamesAreEngagedAgainHearOfEachClusterOnceAndOfTheLastOneLast(t *testing.T) {
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

func TestAnEngagementThatIsToldOfAgainIsTheSame(t *testing.T) {
	g := NewWithT(t)
	c, eu, early := basic.New(), &fakeCluster{}, &component{}
	c.AddAware(early)
	g.Expect(c.Engage(t.Context(), "eu", eu)).To(Succeed())
	g.Expect(c.Engage(t.Context(), "eu", eu)).To(Succeed())
	g.Expect(early.engagements()).To(HaveLen(2), "which may have failed the first time")
	late := &component{}
	c.AddAware(late)
	g.Expect(late.engagements()).To(HaveLen(1))
}

func TestAClusterThatIsEngagedAnewStaysWhenTheFormerEngagementEnds(t *testing.T) {
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
