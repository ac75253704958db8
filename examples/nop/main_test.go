// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/clusters"
	"github.com/rollcall-dev/rollcall/providers/nop"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		SetDefaultEventuallyTimeout(mctest.Timeout)
		goleak.VerifyTestMain(m)
	}
}

func TestWrongFlags(t *testing.T) {
	g := NewWithT(t)
	output, exitCode := exampletest.Run(t, "a")
	g.Expect(exitCode).To(Equal(1))
	g.Expect(output).To(ContainSubstring(`unexpected argument \"a\"`))
}

// newServer returns a cluster with a ConfigMap.
func newServer(t *testing.T, name string) *mctest.Cluster {
	t.Helper()
	server := mctest.New(t)
	if err := server.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
		t.Fatal(err)
	}
	return server
}

func TestExample(t *testing.T) {
	g := NewWithT(t)
	out := &exampletest.Output{}
	mgr, err := newManager(newServer(t, "a").Config(), nop.New(), out, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	g.Eventually(out.String).Should(Equal("ConfigMap default/a in cluster \"\" has 0 keys\n"))
}

// The same reconciler has the clusters of another provider.
func TestWithOtherProvider(t *testing.T) {
	g := NewWithT(t)
	out, provider := &exampletest.Output{}, clusters.New()
	eu, err := cluster.New(newServer(t, "b").Config())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(eu.GetHTTPClient().CloseIdleConnections)
	g.Expect(provider.Add(t.Context(), "eu", eu)).To(Succeed())
	mgr, err := newManager(newServer(t, "a").Config(), provider, out, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	g.Eventually(out.String).Should(And(ContainSubstring(`ConfigMap default/a in cluster ""`), ContainSubstring(`ConfigMap default/b in cluster "eu"`)))
}
