// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
)

func TestClustersComeAndGo(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	first, second := mctest.New(t), mctest.New(t)
	e.create("default", "eu", first.Config())
	e.create("kube-public", "eu", second.Config())
	e.Works(t, eu, first)
	e.Works(t, "kube-public/eu", second)
	g.Expect(e.provider.ListClusters()).To(ConsistOf(eu, multicluster.ClusterName("kube-public/eu")))
	e.update(func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	e.must(e.hub.Delete(object("v1beta2", "default", "eu")))
	e.awaitGone()
	g.Eventually(first.Connections).Should(BeZero())
	_, err := e.provider.Get(t.Context(), eu)
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
	e.Works(t, "kube-public/eu", second)
	g.Expect(e.Engagements("kube-public/eu")).To(Equal(1))

	// Another Cluster of that name is not ready before it says so.
	e.must(e.hub.Create(object("v1beta2", "default", "eu")))
	g.Eventually(func() int { return e.log.Count("The cluster is not ready, not connecting it yet", "default/eu") }).ShouldNot(BeZero())
	g.Expect(e.isGone(eu)).To(BeTrue())

	e.stop()
	g.Eventually(e.hub.Connections).Should(BeZero(), "nothing is left in the management cluster")
	g.Eventually(second.Connections).Should(BeZero())
	g.Expect(e.provider.Status()).To(BeEmpty())
}

func TestNotReadyBecomesReady(t *testing.T) {
	for _, test := range []struct {
		name, version string
		served        []string
		notReady      map[string]any
		ready         map[string]any
	}{
		{
			"v1beta2", "v1beta2",
			[]string{"v1beta1", "v1beta2"},
			map[string]any{"phase": "Provisioned", "initialization": map[string]any{"infrastructureProvisioned": true}},
			map[string]any{"initialization": map[string]any{"controlPlaneInitialized": true}},
		},
		{
			"v1beta2, by the condition", "v1beta2",
			[]string{"v1beta2"},
			map[string]any{"conditions": []any{condition("ControlPlaneInitialized", "False", "NotInitialized")}},
			map[string]any{"conditions": []any{condition("ControlPlaneInitialized", "True", "Initialized")}},
		},
		{
			"v1beta1", "v1beta1",
			[]string{"v1beta1"},
			map[string]any{"controlPlaneReady": false, "infrastructureReady": true, "phase": "Provisioned"},
			map[string]any{"controlPlaneReady": true, "infrastructureReady": true},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			hub, member := mctest.New(t), mctest.New(t)
			g.Expect(hub.Create(crd(test.served...))).To(Succeed())
			e := startEnv(t, hub)
			e.must(hub.Create(object(test.version, "default", "eu"), secret("default", "eu", providertest.Kubeconfig(t, member.Config()))))
			e.status(test.version, "eu", "default", test.notReady)
			g.Eventually(func() int { return e.log.Count("The cluster is not ready, not connecting it yet", "default/eu") }).Should(Equal(1))
			g.Expect(e.isGone(eu)).To(BeTrue())
			e.status(test.version, "eu", "default", test.ready)
			e.Works(t, eu, member)
			g.Expect(member.Connections()).To(BeNumerically(">", 0))

			e.status(test.version, "eu", "default", test.notReady)
			e.set(providertest.Kubeconfig(t, member.Config())) // a change that follows
			e.Works(t, eu, member)
			g.Expect(e.Engagements(eu)).To(Equal(1), "it stays connected")
		})
	}
}

func TestPausedStaysAsItIs(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member, other := mctest.New(t), mctest.New(t)
	e.create("default", "eu", member.Config())
	e.Works(t, eu, member)
	e.update(func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"paused": true} })
	paused := object("v1beta2", "default", "us")
	paused.Object["spec"] = map[string]any{"paused": true}
	e.must(e.hub.Create(paused, secret("default", "us", providertest.Kubeconfig(t, other.Config()))))
	g.Eventually(func() int { return e.log.Count("The cluster is not ready, not connecting it yet", "default/us") }).Should(Equal(1))
	e.Works(t, eu, member)
	g.Expect(e.Engagements(eu)).To(Equal(1))
	g.Expect(e.isGone("default/us")).To(BeTrue())
}

func TestDeletingStaysUntilGone(t *testing.T) {
	reason := func(reason string) func(*env) {
		return func(e *env) {
			e.status("v1beta2", "eu", "default", initialized(condition("Deleting", "True", reason)))
		}
	}
	for _, test := range []struct {
		name string
		gone func(e *env)
	}{
		{"the infrastructure is next", reason("WaitingForInfrastructureDeletion")},
		{"all is deleted", reason("DeletionCompleted")},
		{"the Secret is collected", func(e *env) { e.must(e.hub.Delete(secret("default", "eu", nil))) }},
		{"the Cluster is removed", func(e *env) { e.update(func(u *unstructured.Unstructured) { u.SetFinalizers(nil) }) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			member := mctest.New(t)
			e.create("default", "eu", member.Config())
			e.Works(t, eu, member)
			e.must(e.hub.Delete(object("v1beta2", "default", "eu")))
			for _, before := range []string{"WaitingForBeforeDeleteHook", "WaitingForWorkersDeletion", "WaitingForControlPlaneDeletion", "InternalError"} {
				reason(before)(e)
				e.Works(t, eu, member)
			}
			g.Expect(e.Engagements(eu)).To(Equal(1), "no teardown before the control plane is gone")

			// A controller that starts now finds the cluster too.
			other := startEnv(t, e.hub)
			providertest.Await(t, "the ConfigMap is reconciled again", func() bool { return other.Reconciled(eu, "object-1") })

			test.gone(e)
			e.awaitGone()
			other.awaitGone()
			g.Eventually(member.Connections).Should(BeZero())
			if u := object("v1beta2", "default", "eu"); e.hub.Get(clientKey(u), u) == nil {
				g.Expect(e.log.Count("The control plane of the cluster was deleted", "default/eu")).To(Equal(1))
				reason("InternalError")(e) // which says nothing of the control plane
				e.create("default", "us", member.Config())
				e.Works(t, "default/us", member)
				g.Expect(e.isGone(eu)).To(BeTrue(), "it is not connected again")
			}
		})
	}
}

// A finalizer in a deleting cluster is removed by a reconciler.
func TestFinalizerInDeletingCluster(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	e.create("default", "eu", member.Config())
	e.Works(t, eu, member)
	e.must(e.hub.Delete(object("v1beta2", "default", "eu")))
	e.status("v1beta2", "eu", "default", initialized(condition("Deleting", "True", "WaitingForWorkersDeletion")))
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept", Finalizers: []string{"example.com/wait"}}}
	g.Expect(member.Create(cm)).To(Succeed())
	g.Expect(member.Delete(cm)).To(Succeed())
	providertest.Await(t, "the terminating ConfigMap is reconciled", func() bool { return e.Reconciled(eu, "kept") })
	cl, err := e.provider.Get(t.Context(), eu)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cl.GetAPIReader().Get(t.Context(), clientKey(cm), cm)).To(Succeed())
	cm.Finalizers = nil
	g.Expect(cl.GetClient().Update(t.Context(), cm)).To(Succeed())
	g.Expect(member.Get(clientKey(cm), cm)).NotTo(Succeed())
}

func TestRotation(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	token := func(i int) string { return fmt.Sprintf("token-%d", i) }
	member.AddToken(token(0), "controller")
	e.create("default", "eu", member.ConfigFor(token(0)))
	e.Works(t, eu, member)
	before := e.lists.Count()
	g.Expect(before).To(BeNumerically(">", 0))
	var created []string
	for i := 1; i <= 20; i++ {
		member.AddToken(token(i), "controller")
		e.set(providertest.Kubeconfig(t, member.ConfigFor(token(i))))
		providertest.Await(t, "the new token is used", func() bool { return e.token() == token(i) })
		member.RevokeToken(token(i - 1))
		created = append(created, e.Create(t, member))
	}
	for _, name := range created {
		g.Eventually(func() bool { return e.Reconciled(eu, name) }).Should(BeTrue(), name)
	}
	g.Expect(e.lists.Count()).To(Equal(before), "nothing is listed again")
	g.Expect(e.Engagements(eu)).To(Equal(1))
}

func TestEndpointChanges(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*mctest.Cluster)
	}{
		{"another address", (*mctest.Cluster).Move},
		{"another CA", func(c *mctest.Cluster) {
			c.RotateCA()
			c.CloseConnections()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			member := mctest.New(t)
			e.create("default", "eu", member.Config())
			e.Works(t, eu, member)
			before := e.lists.Count()
			g.Expect(before).To(BeNumerically(">", 0))
			test.change(member)
			e.set(providertest.Kubeconfig(t, member.Config()))
			e.Works(t, eu, member)
			g.Expect(e.Engagements(eu)).To(Equal(1))
			g.Expect(e.lists.Count()).To(Equal(before), "nothing is listed again")
		})
	}
}

func TestBrokenSecretKeepsCluster(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(e *env)
		want   string
	}{
		{"removed", func(e *env) { e.must(e.hub.Delete(secret("default", "eu", nil))) }, "Secret default/eu-kubeconfig: does not exist"},
		{"no label", func(e *env) { e.updateSecret(func(s *corev1.Secret) { s.Labels = nil }) }, "has no label cluster.x-k8s.io/cluster-name"},
		{"no key", func(e *env) { e.updateSecret(func(s *corev1.Secret) { s.Data = nil }) }, `Secret default/eu-kubeconfig: has no key "value"`},
		{"invalid", func(e *env) { e.set([]byte("a: [s3cr3t")) }, "Secret default/eu-kubeconfig: is not valid YAML"},
		{"a command", func(e *env) {
			config := providertest.Config(e.hub.Config())
			config.AuthInfos["main"] = execUser("/bin/sh")
			e.set(providertest.Encode(e.t, config))
		}, `Secret default/eu-kubeconfig: context "main": user "main": exec: running a command is not allowed`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			member, good := mctest.New(t), mctest.New(t)
			e.create("default", "eu", member.Config())
			e.create("default", "good", good.Config())
			e.Works(t, eu, member)
			e.Works(t, "default/good", good)
			before := e.lists.Count()
			test.damage(e)
			providertest.AwaitStatus(t, e.provider, eu, fleet.Ready, fleet.AccessUpdateFailed, test.want)
			providertest.AwaitBroken(t, 1, 0)
			g.Expect(e.log.Count(`"Cannot use the cluster's new access, keeping the current connection"`, `"default/eu"`)).NotTo(BeZero())
			e.Works(t, eu, member)
			e.Works(t, "default/good", good)
			g.Expect(e.log.Count("s3cr3t")).To(BeZero())

			fixed := secret("default", "eu", providertest.Kubeconfig(t, member.Config()))
			if e.hub.Create(fixed) != nil {
				e.updateSecret(func(s *corev1.Secret) { s.Labels, s.Data = fixed.Labels, fixed.Data })
			}
			providertest.AwaitReady(t, e.provider, eu)
			e.Works(t, eu, member)
			g.Expect(e.Engagements(eu)).To(Equal(1))
			g.Expect(e.lists.Count()).To(Equal(before))
		})
	}
}

func TestSecretAppearsLater(t *testing.T) {
	e := newEnv(t)
	member := mctest.New(t)
	e.must(e.hub.Create(object("v1beta2", "default", "eu")))
	e.status("v1beta2", "eu", "default", initialized())
	providertest.AwaitStatus(t, e.provider, eu, fleet.Backoff, fleet.ResolveFailed, "Secret default/eu-kubeconfig: does not exist")
	providertest.AwaitBroken(t, 0, 1)
	e.must(e.hub.Create(secret("default", "eu", providertest.Kubeconfig(t, member.Config()))))
	e.Works(t, eu, member)
}

func TestRestart(t *testing.T) {
	e := newEnv(t)
	member := mctest.New(t)
	e.create("default", "eu", member.Config())
	e.Works(t, eu, member)
	e.stop()
	again := startEnv(t, e.hub)
	providertest.Await(t, "the ConfigMap is reconciled again", func() bool { return again.Reconciled(eu, "object-1") })
}
