// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// about matches a delay with its jitter.
func about(d time.Duration) types.GomegaMatcher {
	return And(BeNumerically(">=", d), BeNumerically("<=", d*12/10))
}

func TestThrottleChanges(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pauses []int // seconds before each change, after its delay
		want   []int // delays of the changes, in seconds
	}{
		{"five at once, then with a delay that doubles", make([]int, 9), []int{0, 0, 0, 0, 0, 1, 2, 4, 8}},
		{"the delay ends at the maximum", make([]int, 15), []int{0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60}},
		{"short pauses count for the delay", []int{0, 0, 0, 0, 0, 2, 3, 0}, []int{0, 0, 0, 0, 0, 0, 0, 4}},
		{"a pause of the maximum does not reset", []int{0, 0, 0, 0, 0, 61, 0}, []int{0, 0, 0, 0, 0, 0, 2}},
		{"a longer pause resets", []int{0, 0, 0, 0, 0, 63, 0, 0, 0, 0, 0}, []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			throttle := worker.NewThrottle(time.Second, time.Minute)
			now := time.Now()
			for i, pause := range tc.pauses {
				now = now.Add(time.Duration(pause) * time.Second)
				delay := throttle.UntilChange(now)
				g.Expect(delay).To(about(time.Duration(tc.want[i])*time.Second), "change %d", i)
				now = now.Add(delay)
				throttle.FollowChange(now)
			}
		})
	}
}

func TestThrottleFailures(t *testing.T) {
	g := NewWithT(t)
	throttle := worker.NewThrottle(time.Second, time.Minute)
	for _, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		g.Expect(throttle.Failed()).To(about(time.Duration(want) * time.Second))
	}
	throttle.Reset()
	g.Expect(throttle.Failed()).To(about(time.Second), "after Reset")
	throttle.Failed()
	throttle.FollowChange(time.Now())
	g.Expect(throttle.Failed()).To(about(time.Second), "after a change")
}

func TestThrottles(t *testing.T) {
	began := time.Now()
	at := began.Add
	const longest = time.Minute
	for _, tc := range []struct {
		name string
		use  func(all *worker.Throttles, throttle *worker.Throttle) // throttle is of "a", acquired at 0
		at   time.Duration                                          // of the next Acquire
		same bool
	}{
		{"in use", func(*worker.Throttles, *worker.Throttle) {}, time.Hour, true},
		{"released a short time ago", func(all *worker.Throttles, _ *worker.Throttle) { all.Release("a", at(0)) }, longest, true},
		{"released long ago", func(all *worker.Throttles, _ *worker.Throttle) { all.Release("a", at(0)) }, longest + 1, false},
		{"released while another worker uses it", func(all *worker.Throttles, _ *worker.Throttle) {
			all.Acquire("a", at(0))
			all.Release("a", at(0))
		}, time.Hour, true},
		{"acquired again before it expired", func(all *worker.Throttles, _ *worker.Throttle) {
			all.Release("a", at(0))
			all.Acquire("a", at(longest))
			all.Release("a", at(longest))
		}, 2 * longest, true},
		{"released long ago, but with a delay", func(all *worker.Throttles, throttle *worker.Throttle) {
			for range 20 {
				throttle.FollowChange(at(0))
			}
			all.Release("a", at(0))
		}, longest + 1, true},
		{"others expire", func(all *worker.Throttles, _ *worker.Throttle) {
			for i := range 10 {
				name := multicluster.ClusterName(fmt.Sprint(i))
				all.Acquire(name, at(0))
				all.Release(name, at(0))
			}
			all.Release("a", at(2*longest))
			all.Acquire("b", at(2*longest))
		}, 2 * longest, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			all := worker.NewThrottles(time.Second, longest)
			throttle := all.Acquire("a", at(0))
			g.Expect(throttle.Begin()).To(BeFalse())
			tc.use(all, throttle)
			again := all.Acquire("a", at(tc.at))
			g.Expect(again == throttle).To(Equal(tc.same))
			g.Expect(again.Begin()).To(Equal(tc.same), "a new worker follows a change")
		})
	}
}
