// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/test/internal/inmemory"
)

func TestStandbyReadiness(t *testing.T) {
	for _, tc := range []struct {
		name         string
		leaderOnly   bool // runs the fleet
		whileWaiting types.GomegaMatcher
	}{
		{"ready if the fleet runs on the leader only", true, Succeed()},
		{"not ready while its own fleet has too few ready clusters", false, MatchError(ContainSubstring("0 of 1 clusters are ready"))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			home, c, list := mctest.New(t), mctest.New(t), inmemory.New()
			lease := foreignLease()
			g.Expect(home.Create(lease)).To(Succeed())
			f, err := fleet.New(fleet.Options{Source: list, Credentials: list, Connection: fleet.ConnectionOptions{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}})
			g.Expect(err).NotTo(HaveOccurred())
			mgr, err := mcmanager.New(home.Config(), f, electedBy(lease, true), mcmanager.WithProviderNeedLeaderElection(tc.leaderOnly))
			g.Expect(err).NotTo(HaveOccurred())
			check := f.LeaderReadyCheck(1, mgr.Elected())
			ready := func() error { return check(nil) }
			defer mctest.StartManager(t, mgr)()

			c.Fault(mctest.Refuse)
			added := make(chan struct{})
			go func() {
				defer close(added)
				list.Add(c) // waits for the fleet
			}()
			g.Eventually(func() int { return home.Requests("get", "leases.coordination.k8s.io") }).Should(BeNumerically(">", 2))
			if !tc.leaderOnly {
				<-added
			}
			g.Eventually(ready).Should(tc.whileWaiting)
			g.Consistently(ready).Should(tc.whileWaiting)

			g.Expect(home.Delete(lease)).To(Succeed())
			g.Eventually(mgr.Elected()).Should(BeClosed())
			<-added
			g.Eventually(ready).Should(MatchError(ContainSubstring("0 of 1 clusters are ready")))
			c.Clear()
			g.Eventually(ready).Should(Succeed())
		})
	}
}
