// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		SetDefaultEventuallyTimeout(mctest.Timeout)
		goleak.VerifyTestMain(m)
	}
}

func TestWrongFlags(t *testing.T) {
	g := NewWithT(t)
	output, exitCode := exampletest.Run(t)
	g.Expect(exitCode).To(Equal(1))
	g.Expect(output).To(ContainSubstring("--clusterprofile-provider-file must be given"))
}

func TestEvents(t *testing.T) {
	g := NewWithT(t)
	hub := exampletest.NewHub(t, 2)
	eu, us := hub.Members.Cluster(0), hub.Members.Cluster(1)
	mgr, err := newManager(hub.Config(), hub, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	events := func(c *mctest.Cluster) func() []string {
		return func() (found []string) {
			var list eventsv1.EventList
			g.Expect(hub.List(&list)).To(Succeed())
			for _, e := range list.Items {
				if e.Regarding.Kind == "ClusterProfile" && e.Regarding.Name == c.Name() {
					found = append(found, e.Reason+": "+e.Note)
				}
			}
			return found
		}
	}
	const engaged, disengaged = "Engaged: Controllers reconcile the cluster", "Disengaged: Controllers no longer reconcile the cluster"
	hub.Join(t, eu, nil)
	hub.Join(t, us, nil)
	g.Eventually(events(eu)).Should(ConsistOf(engaged))
	g.Eventually(events(us)).Should(ConsistOf(engaged))

	profile := &inventory.Profile{}
	g.Expect(hub.Get(client.ObjectKey{Namespace: "default", Name: eu.Name()}, profile)).To(Succeed())
	profile.Labels = map[string]string{"region": "eu"}
	g.Expect(hub.Update(profile)).To(Succeed())
	g.Eventually(events(eu)).Should(ConsistOf(engaged, "LabelsChanged: The labels of the cluster are map[region:eu]"))

	hub.Leave(t, us)
	g.Eventually(events(us)).Should(ConsistOf(engaged, disengaged))
	g.Expect(events(eu)()).To(HaveLen(2))
}
