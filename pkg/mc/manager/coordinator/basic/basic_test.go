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

// component notes what it is engaged with.
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

func TestClustersAndComponentsMeet(t *testing.T) {
	for _, tc := range []struct {
		name string
		meet func(c *basic.Coordinator, comp *component, engage func() error) error
	}{
		{
			name: "where the component comes first",
			meet: func(c *basic.Coordinator, comp *component, engage func() error) error {
				c.AddAware(comp)
				return engage()
			},
		},
		{
			name: "where the cluster comes first",
			meet: func(c *basic.Coordinator, comp *component, engage func() error) error {
				err := engage()
				c.AddAware(comp)
				return err
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c, comp, cl := basic.New(), &component{}, &fakeCluster{}
			g.Expect(tc.meet(c, comp, func() error { return c.Engage(t.Context(), "eu", cl) })).To(Succeed())
			got := comp.engagements()
			g.Expect(got).To(HaveLen(1))
			g.Expect(got[0].name).To(BeEquivalentTo("eu"))
			g.Expect(got[0].cluster).To(BeIdenticalTo(cl))
			g.Expect(got[0].ctx).To(BeIdenticalTo(t.Context()), "the provider's context, which ends when the cluster leaves")
		})
	}
}

func TestEachComponentIsEngagedWithEachClusterOnceWhoeverComesFirst(t *testing.T) {
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

func TestAClusterThatHasLeftIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, first, second := basic.New(), &component{}, &component{}
		c.AddAware(first)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
		g.Expect(c.Engage(t.Context(), "us", &fakeCluster{})).To(Succeed())
		leave()
		c.AddAware(second) // maybe before the coordinator has noticed
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

func TestAnEngagementThatHasEndedAlreadyIsForgotten(t *testing.T) {
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

func TestAnEngagementThatHasEndedAlreadyChangesNothing(t *testing.T) {
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
			g.Expect(comp.engagements()).To(HaveLen(1), "the one that is there is not put out")
			g.Expect(comp.engagements()[0].cluster).To(BeIdenticalTo(eu))
		}
	})
}

func TestNothingOfAClusterThatHasLeftIsKept(t *testing.T) {
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
	c.AddAware(&component{}) // so that c itself is not what has gone
}

func TestANameEngagedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, early, late := basic.New(), &component{}, &component{}
		c.AddAware(early)
		ctx, leave := context.WithCancel(t.Context())
		before, after := &fakeCluster{}, &fakeCluster{}
		g.Expect(c.Engage(ctx, "eu", before)).To(Succeed())
		g.Expect(c.Engage(t.Context(), "eu", after)).To(Succeed())
		g.Expect(early.engagements()).To(HaveLen(2), "components are told of the successor")

		leave() // after the successor has come
		synctest.Wait()
		c.AddAware(late)
		g.Expect(late.engagements()).To(HaveLen(1), "the end of the one before does not make it forget the successor")
		g.Expect(late.engagements()[0].cluster).To(BeIdenticalTo(after))
	})
}

func TestAllComponentsAreToldAlsoAfterOneHasFailed(t *testing.T) {
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

func TestAComponentAddedLateThatFailsIsLoggedAndHearsOfTheOthers(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	c, late := basic.New(), &component{err: errors.New("does not want it")}
	g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
	g.Expect(c.Engage(ctx, "us", &fakeCluster{})).To(Succeed())
	c.AddAware(late)
	g.Expect(late.engagements()).To(HaveLen(2))
	g.Expect(lines).To(ConsistOf(
		And(ContainSubstring("does not want it"), ContainSubstring(`"cluster"="eu"`)),
		And(ContainSubstring("does not want it"), ContainSubstring(`"cluster"="us"`)),
	))
}

func TestAComponentMayCallBack(t *testing.T) {
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

func TestThereIsNothingToRun(t *testing.T) {
	NewWithT(t).Expect(basic.New().Runnable()).To(BeNil())
}
