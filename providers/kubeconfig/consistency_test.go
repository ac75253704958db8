// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

// readYourWrites turns on read-your-writes consistency.
func readYourWrites(o *kubeconfig.Options) {
	o.ClusterOptions = append(o.ClusterOptions, func(o *cluster.Options) {
		o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
	})
}

func TestReadYourWrites(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(*kubeconfig.Options)
	}{
		{"alone", func(*kubeconfig.Options) {}},
		{"with MaxCacheAge", func(o *kubeconfig.Options) { o.Connection.MaxCacheAge = time.Hour }},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t, readYourWrites, test.set)
			member := mctest.New(t)
			e.create("eu", member.Config())
			e.Works(t, "eu", member)
			cl, err := e.mgr.GetCluster(t.Context(), "eu")
			g.Expect(err).NotTo(HaveOccurred())
			for range 20 {
				checkReadYourWrites(t, cl.GetClient())
			}
			token := "new" // the connection is switched
			member.AddToken(token, "controller")
			e.set("eu", providertest.Kubeconfig(t, member.ConfigFor(token)))
			providertest.Await(t, "the new token is used", func() bool { return tokenOf(e.provider) == token })
			checkReadYourWrites(t, cl.GetClient())
			g.Expect(e.Engagements("eu")).To(Equal(1))
		})
	}
}

// checkReadYourWrites creates, changes and deletes a ConfigMap, and reads each result.
func checkReadYourWrites(t *testing.T, cl client.Client) {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}}
	g.Expect(cl.Create(ctx, cm)).To(Succeed())
	found := &corev1.ConfigMap{}
	g.Expect(cl.Get(ctx, clientKey(cm), found)).To(Succeed())
	found.Data = map[string]string{"changed": "yes"}
	g.Expect(cl.Update(ctx, found)).To(Succeed())
	list := &corev1.ConfigMapList{}
	g.Expect(cl.List(ctx, list, client.InNamespace("default"))).To(Succeed())
	g.Expect(list.Items).To(ContainElement(And(HaveField("Name", "own"), HaveField("Data", HaveKey("changed")))))
	g.Expect(cl.Delete(ctx, cm)).To(Succeed())
	g.Expect(client.IgnoreNotFound(cl.Get(ctx, clientKey(cm), cm))).To(Succeed())
	g.Expect(cl.List(ctx, list, client.InNamespace("default"))).To(Succeed())
	g.Expect(list.Items).NotTo(ContainElement(HaveField("Name", "own")))
}

// The cluster dies between a write and the read of what was written.
func TestReadYourWritesOfDeadCluster(t *testing.T) {
	const limit = 2 * time.Second
	g := NewWithT(t)
	e := newEnv(t, readYourWrites, func(o *kubeconfig.Options) { o.Connection.ConnectTimeout = limit })
	member := mctest.New(t)
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	cl, err := e.mgr.GetCluster(t.Context(), "eu")
	g.Expect(err).NotTo(HaveOccurred())
	member.Fault(mctest.Unavailable.On("configmaps").For("list", "watch"))
	member.CloseConnections()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}}
	g.Eventually(func() error { return cl.GetClient().Create(t.Context(), cm) }).Should(Succeed())
	member.Fault(mctest.Hang)
	for _, test := range []struct {
		name string
		read func(context.Context) error
	}{
		{"get", func(ctx context.Context) error { return cl.GetClient().Get(ctx, clientKey(cm), &corev1.ConfigMap{}) }},
		{"list", func(ctx context.Context) error { return cl.GetClient().List(ctx, &corev1.ConfigMapList{}) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			start := time.Now()
			err := test.read(context.Background())
			g.Expect(err).To(MatchError(context.DeadlineExceeded))
			g.Expect(err).To(MatchError(HavePrefix(`cluster "eu": a read with read-your-writes consistency did not end within 2s (ConnectTimeout): `)))
			g.Expect(time.Since(start)).To(BeNumerically("~", limit, limit/2))
			ctx, cancel := context.WithTimeout(t.Context(), limit/10)
			defer cancel()
			start = time.Now()
			g.Expect(test.read(ctx)).To(MatchError(context.DeadlineExceeded))
			g.Expect(time.Since(start)).To(BeNumerically("<", limit), "the context of the caller ends it earlier")
		})
	}
	providertest.Await(t, "the cluster is Degraded", func() bool { return providertest.StatusOf(e.provider, "eu").State == fleet.Degraded })
	member.Clear()
	providertest.AwaitReady(t, e.provider, "eu")
	g.Expect(cl.GetClient().Get(t.Context(), clientKey(cm), &corev1.ConfigMap{})).To(Succeed())
	g.Expect(e.Engagements("eu")).To(Equal(1))
}

// The first write of a kind waits for an informer, which a dead cluster cannot fill.
func TestFirstWriteToDeadCluster(t *testing.T) {
	const limit = time.Second
	e := newEnv(t, readYourWrites, func(o *kubeconfig.Options) { o.Connection.ConnectTimeout = limit })
	member := mctest.New(t)
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	cl, err := e.mgr.GetCluster(t.Context(), "eu")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}}
	NewWithT(t).Expect(client.IgnoreNotFound(cl.GetAPIReader().Get(t.Context(), clientKey(secret), secret))).To(Succeed()) // discovery
	member.Fault(mctest.Hang.On("secrets").For("list", "watch"))
	for _, test := range []struct {
		name  string
		write func(context.Context) error
	}{
		{"create", func(ctx context.Context) error { return cl.GetClient().Create(ctx, secret.DeepCopy()) }},
		{"delete", func(ctx context.Context) error { return cl.GetClient().Delete(ctx, secret.DeepCopy()) }},
		{"update of a subresource", func(ctx context.Context) error { return cl.GetClient().Status().Update(ctx, secret.DeepCopy()) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 10*limit)
			defer cancel()
			g.Expect(test.write(ctx)).To(MatchError(ContainSubstring(`cluster "eu": the cache of *v1.Secret did not sync within 1s (ConnectTimeout)`)))
			g.Expect(time.Since(start)).To(BeNumerically("~", limit, limit/2))
		})
	}
	member.Clear()
	NewWithT(t).Eventually(func() error { return cl.GetClient().Create(t.Context(), secret) }).Should(Succeed())
}
