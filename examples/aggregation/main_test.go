// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
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

func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return n
}

func TestHealth(t *testing.T) {
	g := NewWithT(t)
	hub := exampletest.NewHub(t, 3)
	eu, us, down := hub.Members.Cluster(0), hub.Members.Cluster(1), hub.Members.Cluster(2)
	down.Fault(mctest.Refuse)
	for _, c := range []*mctest.Cluster{eu, us, down} {
		for _, n := range []*corev1.Node{node("a", corev1.ConditionTrue), node("b", corev1.ConditionFalse)} {
			status := n.DeepCopy()
			g.Expect(c.Create(n)).To(Succeed())
			g.Expect(c.UpdateStatus(status)).To(Succeed())
		}
	}
	probes := fleet.ProbeOptions{Interval: 50 * time.Millisecond, Timeout: 100 * time.Millisecond}
	mgr, err := newManager(hub.Config(), clusterinventoryapi.Options{Credentials: hub, Connection: fleet.ConnectionOptions{Probe: probes, MaxBackoff: time.Second}}, "default", 50*time.Millisecond, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	health := func() (members []member) {
		cm := &corev1.ConfigMap{}
		if err := hub.Get(client.ObjectKey{Namespace: "default", Name: "fleet-health"}, cm); err == nil {
			g.Expect(json.Unmarshal([]byte(cm.Data["members"]), &members)).To(Succeed())
		}
		return members
	}
	g.Eventually(health).Should(BeEmpty())
	for _, c := range []*mctest.Cluster{eu, us, down} {
		hub.Join(t, c, nil)
	}
	is := func(c *mctest.Cluster, n string) member {
		return member{Name: "default/" + c.Name(), State: fleet.Ready, Nodes: n}
	}
	g.Eventually(health).Should(And(
		ContainElement(is(eu, "1 of 2")), ContainElement(is(us, "1 of 2")),
		ContainElement(And(HaveField("Name", "default/"+down.Name()), HaveField("State", Not(Equal(fleet.Ready))), HaveField("Error", Not(BeEmpty())), HaveField("Nodes", "")))))

	g.Expect(eu.UpdateStatus(node("b", corev1.ConditionTrue))).To(Succeed())
	g.Eventually(health).Should(ContainElement(is(eu, "2 of 2")))
	down.Clear()
	g.Eventually(health).Should(ContainElement(is(down, "1 of 2")))
	us.Fault(mctest.Refuse)
	g.Eventually(health).Should(ContainElement(And(HaveField("Name", "default/"+us.Name()), HaveField("State", fleet.Degraded), HaveField("Nodes", ""))))
	hub.Leave(t, us)
	g.Eventually(health).Should(HaveLen(2))
}
