// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/cli"
	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestMain(m *testing.M) {
	SetDefaultEventuallyTimeout(mctest.Timeout)
	goleak.VerifyTestMain(m)
}

func newHub(t *testing.T) *mctest.Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return mctest.New(t, mctest.Options{Scheme: scheme})
}

// kubeconfig writes a kubeconfig file with the context member for each config.
func kubeconfig(t *testing.T, name string, config *rest.Config) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	path := filepath.Join(t.TempDir(), name)
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

type buffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// run runs the program until it ends or the context does.
func run(ctx context.Context, args ...string) (code int, out, err string) {
	stdout, stderr := &buffer{}, &buffer{}
	terminal := command.NewTerminal(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: stdout, ErrOut: stderr})
	code = cli.Run(ctx, terminal, append([]string{"mc-credential"}, args...))
	return code, stdout.String(), stderr.String()
}

// startCommand runs the program until the function returned is called, which returns
// the exit code, or the test ends.
func startCommand(t *testing.T, args ...string) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		code, _, stderr := run(ctx, args...)
		t.Log(stderr)
		ended <- code
	}()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { stop() })
	return stop
}

func health(h *mctest.Cluster) func() string {
	return func() string {
		list := &v1alpha1.ClusterProfileList{}
		if err := h.List(list, client.InNamespace("default")); err != nil || len(list.Items) != 1 {
			return "no profile"
		}
		return inventory.HealthOf(&list.Items[0]).String()
	}
}

func TestServe(t *testing.T) {
	g := NewWithT(t)
	hub, member := newHub(t), mctest.New(t)
	args := []string{
		"publish", "--kubeconfig", kubeconfig(t, "hub", hub.Config()), "--namespace", "default",
		"--from", "file", "--file", kubeconfig(t, "member", member.Config()), "--probe-interval", "100ms", "--leader-elect",
	}
	stop := startCommand(t, args...)
	g.Eventually(health(hub)).Should(Equal("Healthy (Ready)"))
	lease := &coordinationv1.Lease{}
	g.Expect(hub.Get(client.ObjectKey{Namespace: "default", Name: "mc-credential-publish"}, lease)).To(Succeed())
	g.Expect(*lease.Spec.HolderIdentity).NotTo(BeEmpty())

	g.Expect(stop()).To(BeZero())
	g.Expect(health(hub)()).To(Equal("Healthy (Ready)"), "profiles stay")
	g.Expect(hub.Get(client.ObjectKeyFromObject(lease), lease)).To(Succeed())
	g.Expect(*lease.Spec.HolderIdentity).To(BeEmpty(), "the next replica need not wait")
}

// A kubeconfig that was replaced is used by the next probe, and published.
func TestReplacedKubeconfig(t *testing.T) {
	g := NewWithT(t)
	hub, member := newHub(t), mctest.New(t)
	file := kubeconfig(t, "member", member.Config())
	stop := startCommand(t,
		"publish", "--kubeconfig", kubeconfig(t, "hub", hub.Config()), "--namespace", "default",
		"--from", "file", "--file", file, "--probe-interval", "1s")
	g.Eventually(health(hub)).Should(Equal("Healthy (Ready)"))
	member.RotateCA()
	member.CloseConnections()
	content, err := os.ReadFile(kubeconfig(t, "member", member.Config()))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
	g.Eventually(func() []byte {
		list := &v1alpha1.ClusterProfileList{}
		g.Expect(hub.List(list)).To(Succeed())
		return list.Items[0].Status.AccessProviders[0].Cluster.CertificateAuthorityData
	}).Should(Equal(member.Config().CAData))
	g.Eventually(health(hub)).WithTimeout(2 * mctest.Timeout).Should(Equal("Healthy (Ready)"))
	g.Expect(stop()).To(BeZero())
}

func TestOnceAsJSON(t *testing.T) {
	g := NewWithT(t)
	hub, member := newHub(t), mctest.New(t)
	hubFile, file := kubeconfig(t, "hub", hub.Config()), kubeconfig(t, "member", member.Config())
	args := []string{"publish", "--kubeconfig", hubFile, "--namespace", "default", "--from", "file", "--file", file}

	code, out, _ := run(t.Context(), append(args, "--dry-run", "-o", "json")...)
	g.Expect(code).To(BeZero())
	g.Expect(out).To(ContainSubstring(`"result": "Created"`))
	g.Expect(health(hub)()).To(Equal("no profile"))

	code, out, _ = run(t.Context(), append(args, "--once")...)
	g.Expect(code).To(BeZero())
	g.Expect(out).To(MatchRegexp(`NAME +CLUSTER +RESULT +MESSAGE\n\S+ +\S+\+member +Created +-\n`))
	g.Expect(health(hub)()).To(Equal("Healthy (Ready)"))

	profiles := &unstructured.UnstructuredList{}
	profiles.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ClusterProfileList"))
	g.Expect(hub.List(profiles)).To(Succeed())
	g.Expect(fmt.Sprint(profiles.Items[0].Object)).NotTo(ContainSubstring(member.AdminToken()))

	code, out, stderr := run(t.Context(), append(args, "--once", "--manager", "other")...)
	g.Expect(code).To(Equal(1))
	g.Expect(out).To(ContainSubstring("Refused"))
	g.Expect(stderr).To(ContainSubstring("1 of 1 profiles not published"))
}

func TestWrongUse(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		err  string
	}{
		{"no source", []string{"--namespace", "a"}, "--from is required"},
		{"no namespace", []string{"--from", "file"}, "--namespace is required"},
		{"an unknown source", []string{"--namespace", "a", "--from", "nowhere"}, "invalid --from"},
		{"a leader that ends", []string{"--namespace", "a", "--from", "file", "--once", "--leader-elect"}, "--leader-elect does not go with --once"},
		{"output without results", []string{"--namespace", "a", "--from", "file", "-o", "json"}, "--output needs --once"},
		{"an invalid manager", []string{"--namespace", "a", "--from", "file", "--manager", "a b"}, "invalid ManagerName"},
		{"a namespace into itself", []string{"--namespace", "default", "--from", "hub"}, "would be published into itself"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			hub := kubeconfig(t, "hub", newHub(t).Config())
			args := append([]string{"publish", "--kubeconfig", hub, "--file", hub}, tc.args...)
			if tc.args[len(tc.args)-1] == "hub" {
				args = append([]string{"publish", "--kubeconfig", hub}, tc.args...)
			}
			code, _, stderr := run(t.Context(), args...)
			g.Expect(stderr).To(ContainSubstring(tc.err))
			g.Expect(code).To(Equal(2))
		})
	}
}
