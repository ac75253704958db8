// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		SetDefaultEventuallyTimeout(mctest.Timeout)
		goleak.VerifyTestMain(m)
	}
}

func TestBothProviders(t *testing.T) {
	g := NewWithT(t)
	local, eu := mctest.New(t), mctest.New(t)
	g.Expect(local.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "blue"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "x"}})).To(Succeed())
	g.Expect(eu.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "y"}})).To(Succeed())

	var mu sync.Mutex
	var lines []string
	options := mctest.ManagerOptions()
	options.Logger = funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{})
	logged := func(message, request string) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, line := range lines {
			if strings.Contains(line, `"msg"="`+message+`"`) && strings.Contains(line, request) {
				return true
			}
		}
		return false
	}
	mgr, err := newManager(t.Context(), local.Config(), map[string]*rest.Config{"eu": eu.Config()}, options)
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	g.Eventually(func() bool { return logged("Found", "cluster://tenant#blue/blue/x") }).Should(BeTrue())
	g.Eventually(func() bool { return logged("Found", "cluster://given#eu/default/y") }).Should(BeTrue())
	g.Eventually(func() bool { return logged("Found in a tenant", "cluster://tenant#blue/blue/x") }).Should(BeTrue())
	g.Expect(logged("Found in a tenant", "given#eu")).To(BeFalse())
}
