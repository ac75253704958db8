// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// readYourWrites turns on read-your-writes consistency.
func readYourWrites(o *cluster.Options) {
	o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
}

func TestReadYourWrites(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(ns("a"), ns("b"))).To(Succeed())
	env := start(t, server, quick(), readYourWrites)
	cl, other := env.engaged(g, "a").GetClient(), env.engaged(g, "b").GetClient()
	for i := range 20 {
		name := fmt.Sprint("x", i)
		g.Expect(cl.Create(t.Context(), configMap("", name))).To(Succeed())
		g.Expect(cl.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.ConfigMap{})).To(Succeed())
		g.Expect(namesOf(g, cl)).To(HaveLen(i + 1))
		g.Expect(namesOf(g, other)).To(BeEmpty())
	}
	g.Expect(cl.Delete(t.Context(), configMap("", "x0"))).To(Succeed())
	g.Expect(namesOf(g, cl)).To(HaveLen(19))
}

// The cluster dies between a write and the read of what was written.
func TestReadYourWritesOfDeadCluster(t *testing.T) {
	const limit = time.Second
	g := NewWithT(t)
	server := mctest.New(t)
	g.Expect(server.Create(ns("a"))).To(Succeed())
	opts := quick()
	opts.Connection.ConnectTimeout = limit
	env := start(t, server, opts, readYourWrites)
	cl := env.engaged(g, "a").GetClient()
	g.Expect(namesOf(g, cl)).To(BeEmpty())
	server.Fault(mctest.Unavailable.On("configmaps").For("list", "watch"))
	server.CloseConnections()
	g.Eventually(func() error { return cl.Create(t.Context(), configMap("", "own")) }).Should(Succeed())
	server.Fault(mctest.Hang)
	for _, test := range []struct {
		name string
		read func(context.Context) error
	}{
		{"get", func(ctx context.Context) error {
			return cl.Get(ctx, client.ObjectKey{Name: "own"}, &corev1.ConfigMap{})
		}},
		{"list", func(ctx context.Context) error { return cl.List(ctx, &corev1.ConfigMapList{}) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			start := time.Now()
			err := test.read(context.Background())
			g.Expect(err).To(MatchError(context.DeadlineExceeded))
			g.Expect(err).To(MatchError(HavePrefix("the cluster of the namespaces did not return within 1s (ConnectTimeout): ")))
			g.Expect(time.Since(start)).To(BeNumerically("~", limit, limit/2))
		})
	}
	server.Clear()
	g.Eventually(func() error { return cl.Get(t.Context(), client.ObjectKey{Name: "own"}, &corev1.ConfigMap{}) }).Should(Succeed())
}
