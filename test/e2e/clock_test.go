// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// jumpingClock is a clock that can be set while it runs. Its times have no
// monotonic part that could hide that; its timers are real.
type jumpingClock struct {
	clock.RealClock
	ahead atomic.Int64
}

func (c *jumpingClock) Now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.ahead.Load()))
}

func (c *jumpingClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *jumpingClock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

func TestClockJumps(t *testing.T) {
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
			e := newEnv(t, func(o *fleet.Options) { o.Connection.Clock = clock })
			bad.Fault(mctest.Refuse)
			e.Add(f.Clusters()...)
			e.awaitState(bad, fleet.Backoff, "refused")
			e.checkReconciles(good...)
			clock.jump(tc.by)
			e.checkReconciles(good...)
			bad.Clear()
			e.awaitReady(bad)
			e.checkReconciles(f.Clusters()...)

			bad.Fault(mctest.Hang)
			before := bad.Requests("get", "namespaces")
			NewWithT(t).Eventually(func() int { return bad.Requests("get", "namespaces") }).Should(
				BeNumerically(">", before+1), "a probe has failed")
			clock.jump(tc.by)
			// By this clock it may have been down for long enough to be dropped.
			NewWithT(t).Eventually(func() fleet.ClusterStatus { return e.status(bad) }).Should(
				And(HaveField("State", Not(Equal(fleet.Ready))), HaveField("LastError", ContainSubstring("no response within 500ms"))))
			e.checkReconciles(good...)
			clock.jump(-2 * tc.by)
			bad.Clear()
			e.awaitReady(bad)
			e.checkReconciles(f.Clusters()...)
			e.checkUndisturbed(good...)
			e.stopAndCheck(f.Clusters()...)
		})
	}
}
