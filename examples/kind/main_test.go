// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// If this variable is set, the test binary is the example.
const programVariable = "ROLLCALL_EXAMPLE"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// output is what the example prints.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// kubeconfig returns a kubeconfig for a server.
func kubeconfig(t *testing.T, config *rest.Config, server string) []byte {
	t.Helper()
	content, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"c": {Token: config.BearerToken}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// The example runs with a stand-in for Docker: "make test-kind" has a real one.
func TestExample(t *testing.T) {
	listener, err := net.Listen("tcp", ":8080")
	if err != nil {
		t.Skip("the example serves its metrics on port 8080, which is in use:", err)
	}
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(mctest.Timeout)
	g.Expect(listener.Close()).To(Succeed())
	dir := t.TempDir()
	script, err := filepath.Abs("../../providers/kind/testdata/engine.sh")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.Symlink(script, filepath.Join(dir, "docker"))).To(Succeed())
	local := mctest.New(t).Config()
	g.Expect(os.WriteFile(filepath.Join(dir, "local"), kubeconfig(t, local, local.Host), 0o600)).To(Succeed())
	for i, name := range []string{"alpha", "beta"} {
		member := mctest.New(t)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello-" + name}}
		g.Expect(member.Create(cm)).To(Succeed())
		server, err := url.Parse(member.Config().Host)
		g.Expect(err).NotTo(HaveOccurred())
		state := filepath.Join(dir, "clusters", name)
		g.Expect(os.MkdirAll(state, 0o700)).To(Succeed())
		for file, content := range map[string]string{
			"id": fmt.Sprintf("%064d\n", i), "ports": server.Host + "\n",
			"admin.conf": string(kubeconfig(t, member.Config(), "https://"+name+"-control-plane:6443")),
		} {
			g.Expect(os.WriteFile(filepath.Join(state, file), []byte(content), 0o600)).To(Succeed())
		}
	}

	command, out := exec.CommandContext(t.Context(), os.Args[0]), &output{}
	command.Env = append(os.Environ(), programVariable+"=1", "FAKE_ENGINE="+dir, "KIND_EXPERIMENTAL_PROVIDER=docker",
		"KUBECONFIG="+filepath.Join(dir, "local"), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	command.Stdout, command.Stderr = out, out
	g.Expect(command.Start()).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	g.Eventually(out.String).Should(And(
		ContainSubstring(`ConfigMap default/hello-alpha in cluster "alpha"`),
		ContainSubstring(`ConfigMap default/hello-beta in cluster "beta"`)))
	g.Expect(command.Process.Signal(syscall.SIGTERM)).To(Succeed())
	g.Eventually(ended).Should(Receive(BeNil()), "it ends without an error")
}
