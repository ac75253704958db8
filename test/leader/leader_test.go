// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package leader_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// members is how many clusters there are.
const members = 3

// newMembers returns clusters that have two objects of each kind.
func newMembers(t *testing.T) *mctest.Fleet {
	t.Helper()
	var objects []client.Object
	for _, name := range []string{"a", "b"} {
		meta := metav1.ObjectMeta{Namespace: "default", Name: name}
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}, &corev1.ServiceAccount{ObjectMeta: meta})
	}
	return mctest.NewFleet(t, members, mctest.Options{Objects: objects})
}

// once is what a recorder has seen when each object was reconciled once.
var once = map[string]int{"c0/a": 1, "c0/b": 1, "c1/a": 1, "c1/b": 1, "c2/a": 1, "c2/b": 1}

// reads is how often a kind was listed, or listed and watched in one request.
func reads(f *mctest.Fleet, resource string) int {
	n := 0
	for _, c := range f.Clusters() {
		n += c.Requests("list", resource) + c.Requests("watch", resource)
	}
	return n
}

func openWatches(f *mctest.Fleet, resource string) func() int {
	return func() int {
		n := 0
		for _, c := range f.Clusters() {
			n += c.OpenWatches(resource)
		}
		return n
	}
}

func TestAStandByTakesOverWithWhatItHasWarmedUp(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultConsistentlyDuration(calm)
	home, fleet := mctest.New(t), newMembers(t)
	leader := newReplica(t, home, fleet, mcmanager.WithProviderNeedLeaderElection(false))
	leader.start(t)
	g.Eventually(leader.leads).Should(BeTrue())
	for _, rec := range []*recorder{leader.byDefault, leader.warm, leader.always} {
		g.Eventually(rec.seen).Should(Equal(once))
	}
	before := reads(fleet, "configmaps")

	standBy := newReplica(t, home, fleet, mcmanager.WithProviderNeedLeaderElection(false))
	standBy.start(t)
	g.Eventually(standBy.warmedUp).Should(Equal(members))
	g.Eventually(openWatches(fleet, "secrets")).Should(Equal(2 * members))
	g.Eventually(standBy.always.seen).Should(Equal(once), "what needs no election reconciles everywhere")
	g.Consistently(standBy.leads).Should(BeFalse())
	g.Expect(standBy.byDefault.seen()).To(BeEmpty())
	g.Expect(standBy.warm.seen()).To(BeEmpty())
	g.Expect(reads(fleet, "configmaps")).To(Equal(before), "nothing is read for controllers that wait")

	read := reads(fleet, "secrets")
	leader.stop()
	g.Expect(<-leader.ended).To(Succeed())
	g.Eventually(standBy.leads).Should(BeTrue())
	g.Eventually(standBy.byDefault.seen).Should(Equal(once))
	g.Eventually(standBy.warm.seen).Should(Equal(once))
	g.Eventually(openWatches(fleet, "secrets")).Should(Equal(members), "those of the one that was")
	g.Consistently(func() []map[string]int {
		return []map[string]int{standBy.byDefault.seen(), standBy.warm.seen(), standBy.always.seen()}
	}).Should(HaveEach(Equal(once)))
	g.Expect(reads(fleet, "secrets")).To(Equal(read), "what was warmed up is not read again")
	g.Expect(leader.byDefault.seen()).To(Equal(once))

	standBy.stop()
	g.Expect(<-standBy.ended).To(Succeed())
	for _, resource := range []string{"configmaps", "secrets", "serviceaccounts"} {
		g.Eventually(openWatches(fleet, resource)).Should(BeZero())
	}
}

func TestAProviderOfLeadersLeavesTheClustersToTheLeader(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultConsistentlyDuration(calm)
	home, fleet := mctest.New(t), newMembers(t)
	leader := newReplica(t, home, fleet)
	leader.start(t)
	g.Eventually(leader.always.seen).Should(Equal(once))
	g.Eventually(leader.warm.seen).Should(Equal(once))

	standBy := newReplica(t, home, fleet)
	standBy.start(t)
	asked := home.Requests("get", "leases")
	g.Eventually(func() int { return home.Requests("get", "leases") }).Should(BeNumerically(">", asked+2),
		"it stands for election, so whatever comes before that has been started")
	g.Consistently(standBy.provider.runs).Should(BeFalse())
	g.Expect(standBy.warmStatus()).To(BeEmpty())
	g.Expect(openWatches(fleet, "serviceaccounts")()).To(Equal(members), "the leader's")

	leader.stop()
	g.Expect(<-leader.ended).To(Succeed())
	for _, rec := range []*recorder{standBy.byDefault, standBy.warm, standBy.always} {
		g.Eventually(rec.seen).Should(Equal(once))
	}
	standBy.stop()
	g.Expect(<-standBy.ended).To(Succeed())
}

func TestAReplicaThatLosesTheLeadStopsEverything(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []mcmanager.Option
	}{
		{"where the provider runs on the leader", nil},
		{"where the provider runs on all replicas", []mcmanager.Option{mcmanager.WithProviderNeedLeaderElection(false)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			g.SetDefaultEventuallyTimeout(patience)
			home, fleet := mctest.New(t), newMembers(t)
			leader := newReplica(t, home, fleet, tc.opts...)
			leader.byDefault.block = true
			leader.start(t)
			g.Eventually(leader.byDefault.busy).Should(Equal(1))
			g.Eventually(leader.warm.seen).Should(Equal(once))

			restore := home.Fault(mctest.Unavailable.On("leases"))
			g.Eventually(leader.ended).Should(Receive(MatchError(ContainSubstring("leader election lost"))))
			g.Eventually(leader.byDefault.busy).Should(BeZero(), "the context of what runs has ended")
			for _, resource := range []string{"configmaps", "secrets", "serviceaccounts"} {
				g.Eventually(openWatches(fleet, resource)).Should(BeZero())
			}

			restore()
			successor := newReplica(t, home, fleet, tc.opts...)
			successor.start(t)
			g.Eventually(successor.byDefault.seen).Should(Equal(once))
			successor.stop()
			g.Expect(<-successor.ended).To(Succeed())
		})
	}
}
