// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/utils/ptr"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestAReplicaThatWaitsToBeTheLeaderIsReady(t *testing.T) {
	for _, tc := range []struct {
		name         string
		leaderAlone  bool // runs the fleet
		whileWaiting types.GomegaMatcher
	}{
		{"if the fleet waits with it", true, Succeed()},
		{"not while the fleet runs there and has less than its share", false, MatchError(ContainSubstring("0 of 1 clusters are ready"))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			home, c, list := mctest.New(t), mctest.New(t), newRoll()
			lease := leaseOfAnother()
			g.Expect(home.Create(lease)).To(Succeed())
			f, err := fleet.New(fleet.Options{Source: list, Credentials: list, Connection: fleet.ConnectionOptions{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond}})
			g.Expect(err).NotTo(HaveOccurred())
			mgr, err := mcmanager.New(home.Config(), f, mcmanager.Options{
				Metrics:        metricsserver.Options{BindAddress: "0"},
				LeaderElection: true, LeaderElectionID: lease.Name, LeaderElectionNamespace: lease.Namespace,
				RetryPeriod: ptr.To(100 * time.Millisecond),
			}, mcmanager.WithProviderNeedLeaderElection(tc.leaderAlone))
			g.Expect(err).NotTo(HaveOccurred())
			check := f.LeaderReadyCheck(1, mgr.Elected())
			ready := func() error { return check(nil) }
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- mgr.Start(ctx) }()
			defer func() {
				cancel()
				g.Expect(<-ended).To(Succeed())
			}()

			c.Fault(mctest.Refuse)
			joined := make(chan struct{})
			go func() {
				defer close(joined)
				list.join(c) // waits for the fleet
			}()
			g.Eventually(func() int { return home.Requests("get", "leases.coordination.k8s.io") }).WithTimeout(patience).Should(BeNumerically(">", 2))
			if !tc.leaderAlone {
				<-joined
			}
			g.Eventually(ready).WithTimeout(patience).Should(tc.whileWaiting)
			g.Consistently(ready, "300ms").Should(tc.whileWaiting)

			g.Expect(home.Delete(lease)).To(Succeed())
			g.Eventually(mgr.Elected()).WithTimeout(patience).Should(BeClosed())
			<-joined
			g.Eventually(ready).WithTimeout(patience).Should(MatchError(ContainSubstring("0 of 1 clusters are ready")))
			c.Clear()
			g.Eventually(ready).WithTimeout(patience).Should(Succeed())
		})
	}
}
