// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

// A new token comes after the old one was revoked, and while the cluster is Degraded.
func TestRotationOfDegradedCluster(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	member.AddToken("old", "controller")
	e.create("eu", member.ConfigFor("old"))
	e.Works(t, "eu", member)
	before := e.lists.Count()
	member.RevokeToken("old")
	member.CloseConnections()
	providertest.AwaitStatus(t, e.provider, "eu", fleet.Degraded, fleet.Unauthorized, "401")
	name := e.Create(t, member)
	e.set("eu", []byte("a: [")) // does not make it worse
	g.Eventually(func() string { return providertest.StatusOf(e.provider, "eu").AccessError }).Should(ContainSubstring("is not valid YAML"))
	member.AddToken("new", "controller")
	e.set("eu", providertest.Kubeconfig(t, member.ConfigFor("new")))
	g.Eventually(func() bool { return e.Reconciled("eu", name) }).Should(BeTrue())
	providertest.AwaitReady(t, e.provider, "eu")
	g.Expect(e.Engagements("eu")).To(Equal(1))
	g.Expect(e.lists.Count()).To(Equal(before))
}

// A rotation while the cluster waits for its first startup slot, or is being connected.
func TestRotationWhileConnecting(t *testing.T) {
	e := newEnv(t, func(o *kubeconfig.Options) { o.Connection.StartupLimit = 1 })
	hanging, member := mctest.New(t), mctest.New(t)
	hanging.Fault(mctest.Hang)
	e.create("hanging", hanging.Config())
	e.create("eu", hanging.ConfigFor("old"))
	NewWithT(t).Eventually(e.provider.Status).Should(HaveLen(2))
	start := time.Now()
	e.set("eu", providertest.Kubeconfig(t, member.Config()))
	e.Works(t, "eu", member)
	t.Logf("engaged after %s, beside a cluster that hangs", time.Since(start))
}

// Another cluster under the same name is engaged again.
func TestAnotherClusterInTheSecret(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	one, other := mctest.New(t), mctest.New(t)
	e.create("eu", one.Config())
	e.Works(t, "eu", one)
	e.set("eu", providertest.Kubeconfig(t, other.Config()))
	e.Works(t, "eu", other)
	g.Expect(e.Engagements("eu")).To(Equal(2))
	g.Eventually(one.Connections).Should(BeZero())
}

// A Secret that is recreated, and one whose label flips, engage the cluster again.
func TestLabelFlips(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	for _, value := range []string{"false", "true", "false", "true"} {
		e.update("eu", func(s *corev1.Secret) { s.Labels[kubeconfig.DefaultKubeconfigSecretLabel] = value })
	}
	e.Works(t, "eu", member)
	g.Expect(e.hub.Delete(secret("eu", nil))).To(Succeed())
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	g.Expect(e.provider.Status()).To(HaveLen(1))
}

// The manager stops while a kubeconfig is being tried.
func TestStopWhileTrying(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member, hanging := mctest.New(t), mctest.New(t)
	hanging.Fault(mctest.Hang)
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	e.set("eu", providertest.Kubeconfig(t, hanging.Config()))
	g.Eventually(hanging.Connections).ShouldNot(BeZero())
	e.Works(t, "eu", member) // by the current connection
	g.Expect(hanging.Connections()).NotTo(BeZero())
	e.stop()
	g.Eventually(hanging.Connections).Should(BeZero())
	g.Eventually(member.Connections).Should(BeZero())
}
