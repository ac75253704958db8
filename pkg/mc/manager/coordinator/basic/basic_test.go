// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package basic_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/manager/coordinator/basic"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

type fakeCluster struct {
	cluster.Cluster
	_ int // so that two of them are not the same
}

type engagement struct {
	ctx     context.Context
	name    multicluster.ClusterName
	cluster cluster.Cluster
}

// component records its engagements.
type component struct {
	err    error
	engage func(engagement) // called with each, if set

	mu  sync.Mutex
	all []engagement
}

func (c *component) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	e := engagement{ctx, name, cl}
	if c.engage != nil {
		c.engage(e)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, e)
	return c.err
}

func (c *component) engagements() []engagement {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]engagement(nil), c.all...)
}

func TestEngage(t *testing.T) {
	for _, tc := range []struct {
		name  string
		order func(c *basic.Coordinator, comp *component, engage func() error) error
	}{
		{
			name: "the component first",
			order: func(c *basic.Coordinator, comp *component, engage func() error) error {
				c.AddAware(comp)
				return engage()
			},
		},
		{
			name: "the cluster first",
			order: func(c *basic.Coordinator, comp *component, engage func() error) error {
				err := engage()
				c.AddAware(comp)
				return err
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c, comp, cl := basic.New(), &component{}, &fakeCluster{}
			g.Expect(tc.order(c, comp, func() error { return c.Engage(t.Context(), "eu", cl) })).To(Succeed())
			got := comp.engagements()
			g.Expect(got).To(HaveLen(1))
			g.Expect(got[0].name).To(BeEquivalentTo("eu"))
			g.Expect(got[0].cluster).To(BeIdenticalTo(cl))
			g.Expect(got[0].ctx).To(BeIdenticalTo(t.Context()), "with the provider's context")
		})
	}
}

func TestEngageRacesWithAddAware(t *testing.T) {
	g := NewWithT(t)
	const n = 32
	c := basic.New()
	components := make([]*component, n)
	var wg sync.WaitGroup
	for i := range n {
		components[i] = &component{engage: func(engagement) { runtime.Gosched() }}
		wg.Go(func() { c.AddAware(components[i]) })
		wg.Go(func() {
			if err := c.Engage(t.Context(), multicluster.ClusterName(fmt.Sprint(i)), &fakeCluster{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, comp := range components {
		times := map[multicluster.ClusterName]int{}
		for _, e := range comp.engagements() {
			times[e.name]++
		}
		g.Expect(times).To(HaveLen(n), "component %d", i)
		g.Expect(times).To(HaveEach(1), "component %d", i)
	}
}

func TestClusterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, first, second := basic.New(), &component{}, &component{}
		c.AddAware(first)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		leave()
		c.AddAware(second) // maybe before the cleanup has run
		synctest.Wait()
		third := &component{}
		c.AddAware(third)
		for _, late := range []*component{second, third} {
			g.Expect(late.engagements()).To(HaveLen(1))
			g.Expect(late.engagements()[0].name).To(BeEquivalentTo("us"))
		}
		g.Expect(first.engagements()).To(HaveLen(2))
	})
}

func TestEndedEngagementIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, late := basic.New(), &component{}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		c.AddAware(late)
		g.Expect(late.engagements()).To(BeEmpty())
	})
}

func TestEndedEngagementReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, early, late, eu := basic.New(), &component{}, &component{}, &fakeCluster{}
		c.AddAware(early)
		g.Expect(c.Engage(t.Context(), "eu", eu)).To(Succeed())
		ended, leave := context.WithCancel(t.Context())
		leave()
		g.Expect(c.Engage(ended, "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		c.AddAware(late)
		for _, comp := range []*component{early, late} {
			g.Expect(comp.engagements()).To(HaveLen(1), "the first one is kept")
			g.Expect(comp.engagements()[0].cluster).To(BeIdenticalTo(eu))
		}
	})
}

func TestClusterIsCollectedAfterItLeaves(t *testing.T) {
	g := NewWithT(t)
	c := basic.New()
	engage := func() (weak.Pointer[fakeCluster], func()) {
		cl := &fakeCluster{}
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", cl)).To(Succeed())
		return weak.Make(cl), leave
	}
	kept, leave := engage()
	runtime.GC()
	g.Expect(kept.Value() == nil).To(BeFalse())
	leave()
	g.Eventually(func() bool { runtime.GC(); return kept.Value() == nil }).Should(BeTrue())
	c.AddAware(&component{}) // keeps c itself
}

func TestNameIsEngagedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, early, late := basic.New(), &component{}, &component{}
		c.AddAware(early)
		ctx, leave := context.WithCancel(t.Context())
		before, after := &fakeCluster{}, &fakeCluster{}
		g.Expect(c.Engage(ctx, "eu", before)).To(Succeed())
		g.Expect(c.Engage(t.Context(), "eu", after)).To(Succeed())
		g.Expect(early.engagements()).To(HaveLen(2), "engaged with the successor")

		leave() // after the successor was engaged
		synctest.Wait()
		c.AddAware(late)
		g.Expect(late.engagements()).To(HaveLen(1), "the end of the old engagement does not remove the new one")
		g.Expect(late.engagements()[0].cluster).To(BeIdenticalTo(after))
	})
}

func TestEngageFails(t *testing.T) {
	g := NewWithT(t)
	c := basic.New()
	first, second := errors.New("first"), errors.New("second")
	components := []*component{{err: first}, {}, {err: second}, {}}
	for _, comp := range components {
		c.AddAware(comp)
	}
	g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(And(MatchError(first), MatchError(second)))
	for _, comp := range components {
		g.Expect(comp.engagements()).To(HaveLen(1))
	}
}

func TestLateComponentFails(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	c, late := basic.New(), &component{err: errors.New("not wanted")}
	g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
	g.Expect(c.Engage(ctx, "us", &fakeCluster{})).To(Succeed())
	c.AddAware(late)
	g.Expect(late.engagements()).To(HaveLen(2))
	g.Expect(lines).To(ConsistOf(
		And(ContainSubstring("not wanted"), ContainSubstring(`"cluster"="eu" "component"="*basic_test.component"`)),
		And(ContainSubstring("not wanted"), ContainSubstring(`"cluster"="us" "component"="*basic_test.component"`)),
	))
}

func TestComponentCallsBack(t *testing.T) {
	g := NewWithT(t)
	c, inner := basic.New(), &component{}
	c.AddAware(&component{engage: func(e engagement) {
		if e.name == "eu" {
			c.AddAware(inner)
			g.Expect(c.Engage(e.ctx, "eu/inner", e.cluster)).To(Succeed())
		}
	}})
	g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
	g.Expect(inner.engagements()).To(HaveLen(2))
}

func TestRunnable(t *testing.T) {
	NewWithT(t).Expect(basic.New().Runnable()).To(BeNil())
}
