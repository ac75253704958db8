// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
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

func TestTenants(t *testing.T) {
	g := NewWithT(t)
	server := mctest.New(t)
	for _, tenant := range []string{"true", "false"} {
		name := "tenant-" + tenant
		g.Expect(server.Create(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tenant": tenant}}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}, Data: map[string]string{"of": name}},
		)).To(Succeed())
	}
	mgr, err := newManager(server.Config(), mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	backup := func(namespace string) (string, error) {
		found := &corev1.ConfigMap{}
		err := server.Get(client.ObjectKey{Namespace: namespace, Name: "settings-copy"}, found)
		return found.Data["of"], err
	}
	g.Eventually(func() (string, error) { return backup("tenant-true") }).Should(Equal("tenant-true"))
	_, err = backup("tenant-false")
	g.Expect(err).To(HaveOccurred())
}
