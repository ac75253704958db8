// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// transitionRecorder is a log sink that records the states of clusters, and checks
// that Status shows them at that moment.
type transitionRecorder struct {
	logr.LogSink
	status func() []fleet.ClusterStatus

	mu      *sync.Mutex // guards what follows
	lines   *[]string
	states  map[fleet.State]int
	current any // the state in the values of the logger
}

func newTransitionRecorder() *transitionRecorder {
	return &transitionRecorder{
		LogSink: funcr.New(func(string, string) {}, funcr.Options{Verbosity: 1}).GetSink(),
		mu:      &sync.Mutex{}, lines: &[]string{}, states: map[fleet.State]int{},
	}
}

// WithValues implements logr.LogSink.
func (d *transitionRecorder) WithValues(values ...any) logr.LogSink {
	with := *d
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] == "state" {
			with.current = values[i+1]
		}
	}
	return &with
}

// Info implements logr.LogSink.
func (d *transitionRecorder) Info(level int, msg string, values ...any) {
	if d.current == nil {
		return // not a transition
	}
	state := d.current.(fleet.State)
	line := fmt.Sprintf("V(%d) %s: %s", level, state, msg)
	if all := d.status(); len(all) != 1 || all[0].State != state {
		line += fmt.Sprintf(", but Status returns %v", all)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	*d.lines = append(*d.lines, line)
	d.states[state]++
}

// take returns the lines since the last call.
func (d *transitionRecorder) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := *d.lines
	*d.lines = nil
	return lines
}

func TestTransitions(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Now())
	c := mctest.New(t)
	d := newTransitionRecorder()
	var env *testEnv
	d.status = func() []fleet.ClusterStatus { return env.Status() }
	var broken error
	ctx := log.IntoContext(t.Context(), logr.New(d))
	env = startIn(ctx, t, []*mctest.Cluster{c}, func(e *awareRecorder) multicluster.Aware { return e }, func(o *fleet.Options) {
		o.Connection.Clock, o.Connection.MinBackoff, o.Connection.MaxBackoff = clock, time.Hour, time.Hour
		o.Connection.NewCluster = func(_ context.Context, _ *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
			if broken != nil {
				return nil, broken
			}
			return cluster.New(config, opts...)
		}
	})
	before := gauges("rollcall_fleet_transitions_total")
	second := env.addAddress(c)

	const (
		pending    = "V(1) Pending: Cluster added"
		another    = "V(0) Pending: Cluster identity changed or cannot be verified, re-engaging"
		superseded = "V(1) Pending: Access changed while connecting, reconnecting"
		connecting = "V(1) Connecting: Connecting cluster"
		syncing    = "V(1) Syncing: Cluster reachable, syncing caches"
		ready      = "V(0) Ready: Cluster engaged"
		degraded   = "V(0) Degraded: Cluster is degraded, its requests wait in the queues"
		again      = "V(0) Ready: Cluster is ready again"
		backoff    = "V(0) Backoff: Cannot connect cluster, retrying"
		dropped    = "V(0) Backoff: Cluster lost, disengaging and reconnecting"
		leaving    = "V(1) Leaving: Disengaging cluster"
	)
	state := env.state("fleet/eu")
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"connection refused", func() {
			c.Fault(mctest.Refuse)
			env.source.put(profile("eu", c.Config().Host))
		}, []string{pending, connecting, backoff}},
		{"reachable, but not created", func() {
			c.Clear()
			broken = errors.New("not now")
			env.credentials.change()
		}, []string{connecting, syncing, backoff}},
		{"usable", func() {
			broken = nil
			env.credentials.change()
		}, []string{connecting, syncing, ready}},
		{"probes fail", func() { c.Fault(mctest.Unavailable) }, []string{degraded}},
		{"a probe succeeds", func() { c.Clear() }, []string{again}},
		{"cluster rebuilt", func() { c.Rebuild() }, []string{another, connecting, syncing, ready}},
		{"probes fail for long", func() { c.Fault(mctest.Unavailable) }, []string{degraded, dropped}},
		{"profile changes while connecting", func() {
			c.Clear()
			c.Fault(mctest.Hang)
			c.ResetRequests()
			probes := func() int { return c.Requests("get", "namespaces") }
			env.credentials.change()
			g.Eventually(probes).Should(Equal(1))
			env.source.put(profile("eu", second))
			g.Eventually(probes).Should(Equal(2))
			c.Clear()
		}, []string{connecting, superseded, connecting, syncing, ready}},
		{"profile removed", func() { env.source.remove("eu") }, []string{leaving}},
	} {
		step.do()
		var lines []string
		g.Eventually(func() []string {
			lines = append(lines, d.take()...)
			if engaged := state() == fleet.Ready || state() == fleet.Degraded; engaged && len(lines) < len(step.want) {
				clock.Step(12 * time.Second) // to the next probe
			}
			return lines
		}).WithPolling(20*time.Millisecond).Should(Equal(step.want), step.name)
	}
	g.Eventually(state).Should(BeEmpty())
	g.Expect(d.take()).To(BeEmpty())

	after := gauges("rollcall_fleet_transitions_total")
	for state, n := range d.states {
		g.Expect(after[string(state)]-before[string(state)]).To(BeEquivalentTo(n), "counter and log of %s", state)
	}
	g.Expect(d.states).To(HaveLen(7), "all states")
}
