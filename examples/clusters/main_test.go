// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/clusters"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		SetDefaultEventuallyTimeout(mctest.Timeout)
		goleak.VerifyTestMain(m)
	}
}

func TestWrongFlags(t *testing.T) {
	g := NewWithT(t)
	output, exitCode := exampletest.Run(t, "eu.kubeconfig")
	g.Expect(exitCode).To(Equal(1))
	g.Expect(output).To(ContainSubstring(`unexpected argument \"eu.kubeconfig\"`))
}

func TestExample(t *testing.T) {
	g := NewWithT(t)
	eu, out, provider := mctest.New(t), &exampletest.Output{}, clusters.New()
	path := filepath.Join(t.TempDir(), "eu.kubeconfig")
	g.Expect(os.WriteFile(path, exampletest.Kubeconfig(t, eu.Config()), 0o600)).To(Succeed())
	g.Expect(eu.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})).To(Succeed())
	mgr, err := newManager(mctest.New(t).Config(), provider, out, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)

	input, commands := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		readCommands(t.Context(), input, provider)
	}()
	fmt.Fprintln(commands, "add eu", path)
	g.Eventually(out.String).Should(ContainSubstring(`ConfigMap default/a in cluster "eu"`))
	fmt.Fprintln(commands, "remove eu")
	g.Eventually(provider.Status).Should(BeEmpty())
	fmt.Fprintln(commands, "add eu", path)
	g.Eventually(provider.ClusterNames).Should(HaveLen(1))
	g.Expect(commands.Close()).To(Succeed())
	<-ended
}

func TestWrongCommands(t *testing.T) {
	for _, words := range [][]string{nil, {"add", "eu"}, {"remove"}, {"list"}} {
		NewWithT(t).Expect(runCommand(t.Context(), words, clusters.New())).To(MatchError(ContainSubstring("unknown command")))
	}
	NewWithT(t).Expect(runCommand(t.Context(), []string{"add", "eu", "/does/not/exist"}, clusters.New())).NotTo(Succeed())
}
