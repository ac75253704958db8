// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// component records its calls.
type component struct {
	during func(healthy bool) // called with the health, if set

	mu      sync.Mutex
	calling bool
	health  []bool
	backlog int
}

func (c *component) SetClusterHealthy(healthy bool) {
	c.mu.Lock()
	if c.calling {
		panic("two calls at a time")
	}
	c.calling = true
	c.mu.Unlock()
	if c.during != nil {
		c.during(healthy)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calling = false
	c.health = append(c.health, healthy)
}

func (c *component) ClusterBacklog() int { return c.backlog }

func (c *component) given() []bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]bool(nil), c.health...)
}

func TestHealth(t *testing.T) {
	g := NewWithT(t)
	e := multicluster.NewEngagement(nil)
	early, late := &component{}, &component{}
	e.Join(t.Context(), early)
	g.Expect(early.given()).To(BeEmpty(), "healthy by default")
	e.SetHealthy(true)
	g.Expect(early.given()).To(BeEmpty())
	e.SetHealthy(false)
	e.SetHealthy(false)
	g.Expect(early.given()).To(Equal([]bool{false}))
	e.Join(t.Context(), late)
	g.Expect(late.given()).To(Equal([]bool{false}), "current health")
	e.SetHealthy(true)
	g.Expect(early.given()).To(Equal([]bool{false, true}))
	g.Expect(late.given()).To(Equal([]bool{false, true}))
}

func TestHealthChangesDuringACall(t *testing.T) {
	g := NewWithT(t)
	e := multicluster.NewEngagement(nil)
	c := &component{}
	c.during = func(healthy bool) {
		if !healthy {
			e.SetHealthy(true)
		}
	}
	e.SetHealthy(false)
	e.Join(t.Context(), c)
	g.Expect(c.given()).To(Equal([]bool{false, true}))
}

func TestHealthRace(t *testing.T) {
	g := NewWithT(t)
	const n, changes = 8, 100
	e := multicluster.NewEngagement(nil)
	components := make([]*component, 2*n)
	var wg sync.WaitGroup
	for i := range components {
		components[i] = &component{during: func(bool) { runtime.Gosched() }, backlog: 1}
		wg.Go(func() {
			for range i {
				runtime.Gosched()
			}
			ctx, leave := context.WithCancel(t.Context())
			t.Cleanup(leave)
			e.Join(ctx, components[i])
			if i >= n {
				leave()
			}
		})
		wg.Go(func() { e.Backlog() })
	}
	for i := range n {
		wg.Go(func() {
			for c := range changes {
				e.SetHealthy((i+c)%2 == 0)
			}
		})
	}
	wg.Wait()
	for _, healthy := range []bool{false, true, false} {
		e.SetHealthy(healthy)
		for _, c := range components[:n] {
			given := c.given()
			g.Expect(given[len(given)-1]).To(Equal(healthy))
		}
	}
	g.Expect(e.Backlog()).To(Equal(n))
	for _, c := range components {
		healthy := true
		for _, next := range c.given() {
			g.Expect(next).NotTo(Equal(healthy), "each call is a change")
			healthy = next
		}
	}
}

// A component that joins while the health changes must not keep the state before.
func TestJoinRace(t *testing.T) {
	for range 200 {
		e, c := multicluster.NewEngagement(nil), &component{}
		e.SetHealthy(false)
		var wg sync.WaitGroup
		wg.Go(func() { e.Join(t.Context(), c) })
		wg.Go(func() { e.SetHealthy(true) })
		wg.Wait()
		if given := c.given(); len(given) > 0 && !given[len(given)-1] {
			t.Fatalf("got %v, the cluster is healthy", given)
		}
	}
}

func TestComponentsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		e := multicluster.NewEngagement(nil)
		kept, leaves, gone := &component{backlog: 3}, &component{backlog: 4}, &component{backlog: 5}
		var changes int
		ctx, leave := context.WithCancel(t.Context())
		e.Join(t.Context(), kept)
		e.Join(ctx, leaves)
		e.OnChange(ctx, func() { changes++ })
		e.NotifyChange()
		g.Expect(e.Backlog()).To(Equal(7))
		leave()
		e.Join(ctx, gone)
		for range 2 { // before and after the cleanup
			e.SetHealthy(false)
			e.NotifyChange()
			g.Expect(e.Backlog()).To(Equal(3))
			synctest.Wait()
		}
		g.Expect(kept.given()).To(Equal([]bool{false}))
		g.Expect(leaves.given()).To(BeEmpty())
		g.Expect(gone.given()).To(BeEmpty())
		g.Expect(changes).To(Equal(1))
	})
}

func TestChangesRace(t *testing.T) {
	e := multicluster.NewEngagement(nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			e.OnChange(ctx, func() { e.OnChange(ctx, func() {}) })
			e.NotifyChange()
		})
		wg.Go(e.NotifyChange)
	}
	wg.Wait()
}

// limiter returns its request.
type limiter struct{ request multicluster.StartRequest }

func (l limiter) RequestStart() multicluster.StartRequest { return l.request }

type startRequest struct{ multicluster.StartRequest }

func TestRequestStart(t *testing.T) {
	g := NewWithT(t)
	request := &startRequest{}
	g.Expect(multicluster.NewEngagement(limiter{request}).RequestStart()).To(BeIdenticalTo(request))
	ended, end := context.WithCancelCause(t.Context())
	left := errors.New("left")
	end(left)
	for name, e := range map[string]*multicluster.Engagement{
		"without a limiter":         multicluster.NewEngagement(nil),
		"a limiter without a limit": multicluster.NewEngagement(limiter{}),
		"no engagement":             multicluster.EngagementFrom(t.Context()),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := e.RequestStart()
			g.Expect(r.Wait(t.Context())).To(Succeed())
			g.Expect(r.Wait(ended)).To(MatchError(left))
			r.Release()
			r.Release()
		})
	}
}

func TestContext(t *testing.T) {
	g := NewWithT(t)
	e, scheme := multicluster.NewEngagement(nil), k8sruntime.NewScheme()
	ctx := multicluster.WithScheme(multicluster.WithEngagement(t.Context(), e), scheme)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.Expect(multicluster.EngagementFrom(ctx)).To(BeIdenticalTo(e))
	g.Expect(multicluster.SchemeFrom(ctx)).To(BeIdenticalTo(scheme))
	g.Expect(multicluster.SchemeFrom(t.Context())).To(BeNil())

	none := multicluster.EngagementFrom(multicluster.WithEngagement(t.Context(), nil))
	g.Expect(none).NotTo(BeNil())
	none.Join(t.Context(), &component{})
	g.Expect(multicluster.EngagementFrom(t.Context()).Backlog()).To(BeZero())
}

type panickingComponent struct{ panics bool }

func (c *panickingComponent) SetClusterHealthy(bool) {
	if c.panics {
		panic("a fault of the component")
	}
}

func (*panickingComponent) ClusterBacklog() int { return 0 }

func TestPanicCanBeRecovered(t *testing.T) {
	e := multicluster.NewEngagement(nil)
	c := &panickingComponent{panics: true}
	e.Join(t.Context(), c)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		e.SetHealthy(false)
	}()
	c.panics = false
	e.SetHealthy(true) // blocks if the lock is still held
}

func TestIdle(t *testing.T) {
	g := NewWithT(t)
	e := multicluster.NewEngagement(nil)
	g.Expect(e.Idle()).To(BeClosed(), "no work has begun")
	first, second := e.BeginWork(), e.BeginWork()
	idle := e.Idle()
	first()
	g.Expect(idle).NotTo(BeClosed())
	g.Expect(e.Idle()).NotTo(BeClosed())
	second()
	g.Expect(idle).To(BeClosed())
	g.Expect(e.Idle()).To(BeClosed())
}
