// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// jumpingClock is a clock that is set while it runs. Its times have nothing
// monotonic that could hide that; timers take as long as they do.
type jumpingClock struct {
	clock.RealClock
	ahead atomic.Int64
}

func (c *jumpingClock) Now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.ahead.Load()))
}

func (c *jumpingClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *jumpingClock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

func TestTheClockJumps(t *testing.T) {
	for _, tc := range []struct {
		name string
		by   time.Duration
	}{
		{"a day ahead", 24 * time.Hour},
		{"a day back", -24 * time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 3)
			bad, good := f.Cluster(0), f.Clusters()[1:]
			clock := &jumpingClock{}
			s := newStage(t, func(o *fleet.Options) { o.Connection.Clock = clock })
			bad.Fault(mctest.Refuse)
			s.join(f.Clusters()...)
			s.awaitState(bad, fleet.Backoff, "refused")
			s.beat(good...)
			clock.jump(tc.by)
			s.beat(good...)
			bad.Clear()
			s.awaitReady(bad)
			s.beat(f.Clusters()...)

			bad.Fault(mctest.Hang)
			asked := bad.Requests("get", "namespaces")
			NewWithT(t).Eventually(func() int { return bad.Requests("get", "namespaces") }).WithTimeout(patience).Should(
				BeNumerically(">", asked+1), "a probe has failed")
			clock.jump(tc.by)
			// By such a clock it may have been down for long enough to be dropped.
			NewWithT(t).Eventually(func() fleet.ClusterStatus { return s.status(bad) }).WithTimeout(patience).Should(
				And(HaveField("State", Not(Equal(fleet.Ready))), HaveField("LastError", ContainSubstring("no answer within 500ms"))))
			s.beat(good...)
			clock.jump(-2 * tc.by)
			bad.Clear()
			s.awaitReady(bad)
			s.beat(f.Clusters()...)
			s.goodUntouched(good)
			s.nothingIsLeft(f.Clusters()...)
		})
	}
}
