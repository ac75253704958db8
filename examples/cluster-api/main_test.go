// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	clusterapi "github.com/rollcall-dev/rollcall/providers/cluster-api"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		goleak.VerifyTestMain(m)
	}
}

func TestWrongFlags(t *testing.T) {
	g := NewWithT(t)
	output, exitCode := exampletest.Run(t, "--namespace", "a", "b")
	g.Expect(exitCode).To(Equal(1))
	g.Expect(output).To(ContainSubstring(`unexpected argument \"b\"`))
}

func TestExample(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(mctest.Timeout)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	management, member := mctest.New(t, mctest.Options{Scheme: scheme}), mctest.New(t)
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eu"}}
	g.Expect(management.Create(cluster, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "eu-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "eu"}},
		Data:       map[string][]byte{"value": exampletest.Kubeconfig(t, member.Config())},
	})).To(Succeed())
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	g.Expect(management.UpdateStatus(cluster)).To(Succeed())
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"k": "v"}}
	g.Expect(member.Create(cm)).To(Succeed())

	out := &exampletest.Output{}
	mgr, err := newManager(management.Config(), clusterapi.Options{}, out, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	g.Eventually(out.String).Should(ContainSubstring(`ConfigMap default/a in cluster "default/eu" has 1 keys`))
	g.Expect(member.Delete(cm)).To(Succeed())
	g.Eventually(out.String).Should(ContainSubstring(`ConfigMap default/a in cluster "default/eu" is gone`))
}
