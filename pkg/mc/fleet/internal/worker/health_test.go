// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
)

// probes counts the probes of a cluster, which fail while it is down.
type probes struct {
	count atomic.Int32
	down  atomic.Bool
}

func (p *probes) probe(context.Context, string) (string, error) {
	p.count.Add(1)
	if p.down.Load() {
		return "", errDown
	}
	return "1", nil
}

// during returns the number of probes in this time.
func (p *probes) during(d time.Duration) int {
	before := p.count.Load()
	pass(d)
	return int(p.count.Load() - before)
}

// next returns just after the next probe.
func (p *probes) next() {
	for before := p.count.Load(); p.count.Load() == before; {
		pass(10 * time.Millisecond)
	}
}

// untilDegraded returns how long it takes until the cluster is Degraded.
func (p *probes) untilDegraded(env *testEnv) time.Duration {
	p.down.Store(true)
	began := time.Now()
	for env.Status().State != worker.Degraded {
		pass(10 * time.Millisecond)
	}
	return time.Since(began)
}

// perHour returns the mean number of probes of an hour with this interval and its
// jitter.
func perHour(interval time.Duration) float64 {
	return float64(time.Hour) / (1.1 * float64(interval))
}

// latest returns the longest time that intervals of the option take.
func latest(intervals float64) time.Duration {
	return time.Duration(intervals*1.2*float64(probeInterval)) + 50*time.Millisecond // which untilDegraded may add
}

// A cluster that responds is probed every other interval, and one that stops
// responding is Degraded as soon as if each interval had a probe.
func TestProbeSchedule(t *testing.T) {
	for _, tc := range []struct {
		name      string
		threshold int
		healthy   time.Duration // between probes
	}{
		{"a threshold of 1", 1, probeInterval},
		{"a threshold of 2", 2, probeInterval},
		{"a threshold of 3", 3, 2 * probeInterval},
		{"a threshold of 6", 6, 2 * probeInterval},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
				env.options.ProbeFailureThreshold = tc.threshold
				p := &probes{}
				env.probe = p.probe
				env.add(t, profile("a"))
				g.Expect(p.during(time.Hour)).To(BeNumerically("~", perHour(tc.healthy), 0.05*perHour(tc.healthy)))
				for range 20 {
					p.next() // the one after it is as far away as can be
					before := p.count.Load()
					g.Expect(p.untilDegraded(env)).To(BeNumerically("<=", latest(float64(tc.threshold))))
					g.Expect(p.count.Load()-before).To(BeEquivalentTo(tc.threshold), "probes until it is Degraded")
					g.Expect(p.during(5 * time.Minute)).To(BeNumerically("~", perHour(probeInterval)/12, 3))
					p.down.Store(false)
					p.next()
					env.is(g, worker.Ready, worker.Engaged, "")
				}
			})
		})
	}
}

// A request of a controller that failed makes the cluster be probed within an
// interval, also if a watch goes on sending data.
func TestSuspectClusterIsProbed(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		p := &probes{}
		env.probe = p.probe
		env.add(t, profile("a"))
		for range 20 {
			p.next()
			env.suspect.Store(true)
			env.lastData.Store(time.Now().UnixNano())
			g.Expect(p.during(latest(1))).To(Equal(1))
		}
	})
}

// A cluster that sends data is not probed. It is Degraded within a little more time
// than a silent one when that ends.
func TestActiveClusterIsNotProbed(t *testing.T) {
	for threshold, within := range map[int]float64{1: 2, 3: 3.25} { // intervals
		inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
			env.options.ProbeFailureThreshold = threshold
			p := &probes{}
			env.probe = p.probe
			env.add(t, profile("a"))
			for range 20 {
				before := p.count.Load()
				for range 60 {
					pass(5 * time.Second)
					env.lastData.Store(time.Now().UnixNano())
				}
				g.Expect(p.count.Load()).To(Equal(before))
				g.Expect(p.untilDegraded(env)).To(BeNumerically("<=", latest(within)))
				p.down.Store(false)
				p.next()
				pass(5 * time.Minute)
				p.next()
				env.lastData.Store(time.Now().UnixNano())
			}
		})
	}
}

// A reconnect that a 401 caused fails while the next probe is under way: there is no
// other one beside it.
func TestOneProbeAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		env.options.ProbeTimeout = time.Hour
		var count atomic.Int32
		env.probe = func(ctx context.Context, _ string) (string, error) {
			switch count.Add(1) {
			case 1: // connects
				return "1", nil
			case 2:
				return "", identity.ErrUnauthorized
			}
			return "", hang(ctx)
		}
		env.add(t, profile("a"))
		env.connect = func(context.Context, *inventory.Profile) error {
			time.Sleep(15 * time.Second)
			return errDown
		}
		env.suspect.Store(true)
		pass(2 * time.Minute)
		g.Expect(count.Load()).To(BeEquivalentTo(3))
	})
}
