// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestClock(t *testing.T) {
	g := NewWithT(t)
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakeClock(began)
	c := mctest.New(t)
	c.Fault(mctest.Hang)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) {
		o.Connection.Clock = clock
		o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = 30*time.Second, time.Minute, time.Minute
		o.Connection.Probe.DropAfter = 2 * time.Minute
	})
	state := env.state("fleet/eu")
	// later steps the clock by a probe interval until the cluster is in the state, and
	// returns the number of steps.
	later := func(want fleet.State) (steps int) {
		g.Eventually(func() fleet.State {
			if state() != want {
				clock.Step(12 * time.Second)
				steps++
			}
			return state()
		}).WithPolling(20 * time.Millisecond).Should(Equal(want))
		return steps
	}

	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(c.Connections).Should(Equal(1))
	g.Expect(env.status("fleet/eu").Since).To(Equal(began))
	clock.Step(29 * time.Second)
	g.Consistently(state, "50ms").Should(Equal(fleet.Connecting))
	clock.Step(time.Second)
	g.Eventually(state).Should(Equal(fleet.Backoff))
	g.Expect(env.status("fleet/eu").LastError).To(ContainSubstring("no engaged cluster within 30s"))
	g.Expect(env.status("fleet/eu").Since).To(Equal(began.Add(30 * time.Second)))

	c.Clear()
	g.Eventually(c.Connections).Should(BeZero())
	clock.Step(59 * time.Second)
	g.Consistently(state, "50ms").Should(Equal(fleet.Backoff))
	later(fleet.Ready)

	lift := c.Fault(mctest.Hang)
	g.Expect(later(fleet.Degraded)).To(BeNumerically(">=", 3), "the threshold")
	g.Expect(env.status("fleet/eu").LastError).To(ContainSubstring("no response within 5s"))
	lift()
	later(fleet.Ready)
	c.Fault(mctest.Refuse)
	later(fleet.Degraded)
	g.Expect(later(fleet.Backoff)).To(BeNumerically("~", 10, 5), "DropAfter is two minutes")
	c.Clear()
	later(fleet.Ready)
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(2))
}
