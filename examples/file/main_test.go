// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/providers/file"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		goleak.VerifyTestMain(m)
	}
}

func TestWrongFlags(t *testing.T) {
	g := NewWithT(t)
	output, exitCode := exampletest.Run(t, "--dir", "a", "b")
	g.Expect(exitCode).To(Equal(1))
	g.Expect(output).To(ContainSubstring(`unexpected argument \"b\"`))
}

func TestExample(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(mctest.Timeout)
	member, dir := mctest.New(t), t.TempDir()
	path := filepath.Join(dir, "a.kubeconfig")
	g.Expect(os.WriteFile(path, exampletest.Kubeconfig(t, member.Config()), 0o600)).To(Succeed())
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"k": "v"}}
	g.Expect(member.Create(cm)).To(Succeed())

	out := &exampletest.Output{}
	mgr, err := newManager(&rest.Config{}, file.Options{KubeconfigDirs: []string{dir}}, out, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	mctest.StartManager(t, mgr)
	g.Eventually(out.String).Should(ContainSubstring(`ConfigMap default/a in cluster "` + path + `+main" has 1 keys`))
	g.Expect(member.Delete(cm)).To(Succeed())
	g.Eventually(out.String).Should(ContainSubstring(`+main" is gone`))
}
