// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestSharesOfTheFleet(t *testing.T) {
	for _, tc := range []struct {
		ready, waiting, leaving int
		share                   float64
		passes                  bool
	}{
		{share: 1, passes: true},
		{leaving: 3, share: 1, passes: true},
		{ready: 3, leaving: 3, share: 1, passes: true},
		{ready: 2, waiting: 1, share: 1},
		{waiting: 1, share: 0, passes: true},
		{ready: 55, waiting: 45, share: 0.55, passes: true},
		{ready: 54, waiting: 46, share: 0.55},
	} {
		t.Run(fmt.Sprintf("%d ready, %d waiting, %d leaving, %v must be ready", tc.ready, tc.waiting, tc.leaving, tc.share), func(t *testing.T) {
			f := &Fleet{}
			f.synced.Store(true)
			total := 0
			add := func(n int, state State) {
				for range n {
					k := &keeper{}
					k.status.Store(&ClusterStatus{State: state})
					f.keepers.Store(multicluster.ClusterName(fmt.Sprint(total)), k)
					total++
				}
			}
			add(tc.ready, Ready)
			add(tc.waiting, Backoff)
			add(tc.leaving, Leaving)
			err := f.ReadyCheck(tc.share)(nil)
			NewWithT(t).Expect(err == nil).To(Equal(tc.passes), "%v", err)
		})
	}
}

func TestAStandbyIsReadyUntilItIsTheLeaderOrTheFleetRuns(t *testing.T) {
	g := NewWithT(t)
	f, elected := &Fleet{}, make(chan struct{})
	check := f.LeaderReadyCheck(0, elected)
	g.Expect(check(nil)).To(Succeed())
	f.started = true
	g.Expect(check(nil)).To(MatchError(ContainSubstring("not been read")))
	f.started = false
	close(elected)
	g.Expect(check(nil)).To(MatchError(ContainSubstring("not been read")), "it is about to start")
	f.synced.Store(true)
	g.Expect(check(nil)).To(Succeed())
}
