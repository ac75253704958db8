// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// memberCount is the number of clusters that a replica reconciles.
const memberCount = 3

// newMembers returns clusters with two objects of each kind.
func newMembers(t *testing.T) *mctest.Fleet {
	t.Helper()
	var objects []client.Object
	for _, name := range []string{"a", "b"} {
		meta := metav1.ObjectMeta{Namespace: "default", Name: name}
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: meta}, &corev1.Secret{ObjectMeta: meta}, &corev1.ServiceAccount{ObjectMeta: meta})
	}
	return mctest.NewFleet(t, memberCount, mctest.Options{Objects: objects})
}

// once is what a recorder returns when each object was reconciled once.
var once = map[string]int{"c0/a": 1, "c0/b": 1, "c1/a": 1, "c1/b": 1, "c2/a": 1, "c2/b": 1}

// lists counts how often a kind was listed, or listed and watched in one
// request.
func lists(f *mctest.Fleet, resource string) int {
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

func TestWarmStandbyTakesOver(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	home, fleet := mctest.New(t), newMembers(t)
	leader := newReplica(t, home, fleet, mcmanager.WithProviderNeedLeaderElection(false))
	leader.start(t)
	g.Eventually(leader.leads).Should(BeTrue())
	for _, rec := range []*recorder{leader.byDefault, leader.warm, leader.always} {
		g.Eventually(rec.reconciles).Should(Equal(once))
	}
	before := lists(fleet, "configmaps")

	standby := newReplica(t, home, fleet, mcmanager.WithProviderNeedLeaderElection(false))
	standby.start(t)
	g.Eventually(standby.warmedUp).Should(Equal(memberCount))
	g.Eventually(openWatches(fleet, "secrets")).Should(Equal(2 * memberCount))
	g.Eventually(standby.always.reconciles).Should(Equal(once), "a controller that needs no election reconciles on all replicas")
	g.Consistently(standby.leads).Should(BeFalse())
	g.Expect(standby.byDefault.reconciles()).To(BeEmpty())
	g.Expect(standby.warm.reconciles()).To(BeEmpty())
	g.Expect(lists(fleet, "configmaps")).To(Equal(before), "nothing is listed for controllers that wait")

	read := lists(fleet, "secrets")
	leader.stop()
	g.Expect(<-leader.ended).To(Succeed())
	g.Eventually(standby.leads).Should(BeTrue())
	g.Eventually(standby.byDefault.reconciles).Should(Equal(once))
	g.Eventually(standby.warm.reconciles).Should(Equal(once))
	g.Eventually(openWatches(fleet, "secrets")).Should(Equal(memberCount), "the former leader has closed its watches")
	g.Consistently(func() []map[string]int {
		return []map[string]int{standby.byDefault.reconciles(), standby.warm.reconciles(), standby.always.reconciles()}
	}).Should(HaveEach(Equal(once)))
	g.Expect(lists(fleet, "secrets")).To(Equal(read), "warm caches are not listed again")
	g.Expect(leader.byDefault.reconciles()).To(Equal(once))

	standby.stop()
	g.Expect(<-standby.ended).To(Succeed())
	for _, resource := range []string{"configmaps", "secrets", "serviceaccounts"} {
		g.Eventually(openWatches(fleet, resource)).Should(BeZero())
	}
}

func TestProviderOnLeaderOnly(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	home, fleet := mctest.New(t), newMembers(t)
	leader := newReplica(t, home, fleet)
	leader.start(t)
	g.Eventually(leader.always.reconciles).Should(Equal(once))
	g.Eventually(leader.warm.reconciles).Should(Equal(once))

	standby := newReplica(t, home, fleet)
	standby.start(t)
	before := home.Requests("get", "leases")
	g.Eventually(func() int { return home.Requests("get", "leases") }).Should(BeNumerically(">", before+2),
		"it tries to become the leader, so all that comes before that has been started")
	g.Consistently(standby.provider.runs).Should(BeFalse())
	g.Expect(standby.warmStatus()).To(BeEmpty())
	g.Expect(openWatches(fleet, "serviceaccounts")()).To(Equal(memberCount), "the leader's")

	leader.stop()
	g.Expect(<-leader.ended).To(Succeed())
	for _, rec := range []*recorder{standby.byDefault, standby.warm, standby.always} {
		g.Eventually(rec.reconciles).Should(Equal(once))
	}
	standby.stop()
	g.Expect(<-standby.ended).To(Succeed())
}

func TestLeadershipLoss(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		opts []mcmanager.Option
	}{
		{"the provider runs on the leader only", nil},
		{"the provider runs on all replicas", []mcmanager.Option{mcmanager.WithProviderNeedLeaderElection(false)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			home, fleet := mctest.New(t), newMembers(t)
			leader := newReplica(t, home, fleet, tc.opts...)
			leader.byDefault.block = true
			leader.start(t)
			g.Eventually(leader.byDefault.busy).Should(Equal(1))
			g.Eventually(leader.warm.reconciles).Should(Equal(once))

			restore := home.Fault(mctest.Unavailable.On("leases"))
			g.Eventually(leader.ended).Should(Receive(MatchError(ContainSubstring("leader election lost"))))
			g.Eventually(leader.byDefault.busy).Should(BeZero(), "the context of running reconciles has ended")
			for _, resource := range []string{"configmaps", "secrets", "serviceaccounts"} {
				g.Eventually(openWatches(fleet, resource)).Should(BeZero())
			}

			restore()
			successor := newReplica(t, home, fleet, tc.opts...)
			successor.start(t)
			g.Eventually(successor.byDefault.reconciles).Should(Equal(once))
			successor.stop()
			g.Expect(<-successor.ended).To(Succeed())
		})
	}
}
