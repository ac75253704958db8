// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		SetDefaultEventuallyTimeout(mctest.Timeout)
		goleak.VerifyTestMain(m)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		text string
	}{
		{"no file", []string{"--clusterprofile-provider-file", "a"}, "--baseline: open : no such file"},
		{"an object of another kind", []string{"--clusterprofile-provider-file", "a", "--baseline", "testdata/pod.yaml"}, `\"shell\" is /v1, Kind=Pod, must be a ClusterRole`},
		{"an argument that is not a flag", []string{"a"}, `unexpected argument \"a\"`},
		{"no provider file", []string{"--baseline", "baseline.yaml"}, "--clusterprofile-provider-file must be given"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			output, exitCode := exampletest.Run(t, test.args...)
			g.Expect(exitCode).To(Equal(1))
			g.Expect(output).To(ContainSubstring(test.text))
		})
	}
}

func TestBaseline(t *testing.T) {
	g := NewWithT(t)
	hub := exampletest.NewHub(t, 3)
	eu, us, down := hub.Members.Cluster(0), hub.Members.Cluster(1), hub.Members.Cluster(2)
	down.Fault(mctest.Refuse)
	text, err := os.ReadFile("baseline.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	baseline, err := parse(text)
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := newManager(hub.Config(), hub, baseline, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())

	obsolete := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "obsolete", Labels: map[string]string{label: "true"}}}
	foreign := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	g.Expect(eu.Create(obsolete, foreign)).To(Succeed())
	for _, member := range hub.Members.Clusters() {
		hub.Join(t, member, nil)
	}
	mctest.StartManager(t, mgr)
	rulesIn := func(c *mctest.Cluster) func() int {
		return func() int {
			role := &rbacv1.ClusterRole{}
			_ = c.Get(client.ObjectKey{Name: "fleet-auditor"}, role)
			return len(role.Rules)
		}
	}
	bindingIn := func(c *mctest.Cluster) func() error {
		return func() error {
			return c.Get(client.ObjectKey{Name: "fleet-auditors"}, &rbacv1.ClusterRoleBinding{})
		}
	}
	for _, member := range []*mctest.Cluster{eu, us} {
		g.Eventually(rulesIn(member)).Should(Equal(2))
		g.Eventually(bindingIn(member)).Should(Succeed())
	}
	g.Eventually(func() error { return eu.Get(client.ObjectKeyFromObject(obsolete), obsolete) }).Should(MatchError(ContainSubstring("not found")))
	g.Expect(eu.Get(client.ObjectKeyFromObject(foreign), foreign)).To(Succeed(), "it is not of the baseline")

	role := &rbacv1.ClusterRole{}
	g.Expect(us.Get(client.ObjectKey{Name: "fleet-auditor"}, role)).To(Succeed())
	role.Rules, role.Labels = nil, nil
	g.Expect(us.Update(role)).To(Succeed())
	g.Eventually(rulesIn(us)).Should(Equal(2), "a change is undone")
	g.Expect(us.Delete(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "fleet-auditors"}})).To(Succeed())
	g.Eventually(bindingIn(us)).Should(Succeed(), "a deleted object is created again")

	g.Expect(rulesIn(down)()).To(BeZero())
	down.Clear()
	g.Eventually(rulesIn(down)).Should(Equal(2))
	g.Eventually(bindingIn(down)).Should(Succeed())
}
