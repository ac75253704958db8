// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
)

// lifecycle is a manager with a provider that reads Secrets, and a controller of ConfigMaps.
type lifecycle struct {
	*providertest.Recorder
	*clusterinventoryapi.Provider
	log   providertest.Log
	lists providertest.Lists
	stop  func()
}

func startLifecycle(t *testing.T, hub *mctest.Cluster) *lifecycle {
	t.Helper()
	g, l := NewWithT(t), &lifecycle{}
	connection := providertest.Quick()
	connection.RESTOptions = []func(*rest.Config) error{l.lists.Option}
	var err error
	l.Provider, err = clusterinventoryapi.New(clusterinventoryapi.Options{
		KubeconfigStrategyOption: kubeconfigstrategy.Option{Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "test"}},
		Connection:               connection,
	})
	g.Expect(err).NotTo(HaveOccurred())
	options := mctest.ManagerOptions()
	options.Logger = l.log.Logger()
	mgr, err := mcmanager.New(hub.Config(), l.Provider, options)
	g.Expect(err).NotTo(HaveOccurred())
	l.Recorder = providertest.Record(t, mgr)
	l.stop = mctest.StartManager(t, mgr)
	return l
}

func TestLifecycle(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(mctest.Timeout)
	const eu, us = multicluster.ClusterName("default/eu"), multicluster.ClusterName("default/us")
	hub, member, other := secretHub(t), mctest.New(t), mctest.New(t)
	secret := secretWith(g, member.Config())
	g.Expect(hub.Create(secret)).To(Succeed())
	set := func(kubeconfig []byte) {
		t.Helper()
		g.Expect(hub.Get(client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		secret.Data[kubeconfigstrategy.SecretDataKeyKubeConfig] = kubeconfig
		g.Expect(hub.Update(secret)).To(Succeed())
	}
	l := startLifecycle(t, hub)
	l.Works(t, eu, member)
	before := l.lists.Count()
	g.Expect(before).To(BeNumerically(">", 0))

	// A broken Secret, and one that runs a command.
	for text, want := range map[string]string{
		"a: [s3cr3t": "Secret default/eu-kubeconfig: is not valid YAML",
		`{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"https://eu"}}],` +
			`"users":[{"name":"u","user":{"exec":{"command":"/bin/sh","args":["s3cr3t"]}}}]}`: "exec: running a command is not allowed",
	} {
		set([]byte(text))
		providertest.AwaitStatus(t, l, eu, fleet.Ready, fleet.AccessUpdateFailed, want)
		providertest.AwaitBroken(t, 1, 0)
		g.Expect(l.log.Count(`"Cannot use the cluster's new access, keeping the current connection"`, `"default/eu"`)).NotTo(BeZero())
		l.Works(t, eu, member)
	}
	g.Expect(l.log.Count("s3cr3t")).To(BeZero())

	// Another token and another address.
	member.AddToken("new", "controller")
	member.Move()
	set(providertest.Kubeconfig(t, member.ConfigFor("new")))
	providertest.AwaitReady(t, l, eu)
	l.Works(t, eu, member)
	g.Expect(l.Engagements(eu)).To(Equal(1))
	g.Expect(l.lists.Count()).To(Equal(before), "nothing is listed again")

	// An outage of the hub, in which a profile is added.
	hub.Fault(mctest.Unavailable)
	hub.CloseConnections()
	l.Works(t, eu, member)
	createHealthy(g, hub, &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "us"}})
	ofOther := secretWith(g, other.Config())
	ofOther.Name, ofOther.Labels[kubeconfigstrategy.SecretLabelKeyClusterProfile] = "us-kubeconfig", "us"
	g.Expect(hub.Create(ofOther)).To(Succeed())
	l.Works(t, eu, member)
	hub.Clear()
	l.Works(t, us, other)
	g.Expect(l.Engagements(eu)).To(Equal(1))

	g.Expect(hub.Delete(&inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "us"}})).To(Succeed())
	g.Eventually(l.ClusterNames).Should(ConsistOf(eu))
	g.Eventually(other.Connections).Should(BeZero())
	l.stop()
	g.Eventually(member.Connections).Should(BeZero())
	g.Expect(l.Status()).To(BeEmpty())

	again := startLifecycle(t, hub)
	providertest.Await(t, "the ConfigMap is reconciled again", func() bool { return again.Reconciled(eu, "object-1") })
}
