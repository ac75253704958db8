// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/file"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
)

func TestContextsComeAndGo(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	eu, us := mctest.New(t), mctest.New(t)
	both := map[string]*clientcmdapi.Config{"eu": providertest.Config(eu.Config()), "us": providertest.Config(us.Config())}
	e.write("kubeconfig.yaml", string(providertest.Encode(t, merged(both))))
	e.write("ignored.yaml", "not matched by a pattern")
	e.Works(t, e.name("kubeconfig.yaml", "eu"), eu)
	e.Works(t, e.name("kubeconfig.yaml", "us"), us)
	g.Expect(e.provider.ClusterNames()).To(ConsistOf(e.name("kubeconfig.yaml", "eu"), e.name("kubeconfig.yaml", "us")))
	cl, err := e.provider.GetTyped(t.Context(), e.name("kubeconfig.yaml", "us"))
	g.Expect(err).NotTo(HaveOccurred())
	profile, _ := fleet.ProfileFrom(cl)
	g.Expect(inventory.Validate(profile)).To(Succeed())
	g.Expect(string(inventory.AccessProviders(profile)[0].Cluster.Extensions[0].Extension.Raw)).To(
		MatchJSON(`{"context":"us","file":"` + filepath.Join(e.dir, "kubeconfig.yaml") + `"}`))

	delete(both, "eu") // a context is removed
	e.write("kubeconfig.yaml", string(providertest.Encode(t, merged(both))))
	g.Eventually(e.isGone(e.name("kubeconfig.yaml", "eu"))).Should(BeTrue())
	g.Eventually(eu.Connections).Should(BeZero())
	e.create("b.kubeconfig", eu.Config()) // a file is added
	e.Works(t, e.name("b.kubeconfig", "main"), eu)
	e.Works(t, e.name("kubeconfig.yaml", "us"), us)
	g.Expect(os.Remove(filepath.Join(e.dir, "b.kubeconfig"))).To(Succeed())
	g.Eventually(e.isGone(e.name("b.kubeconfig", "main"))).Should(BeTrue())
	g.Expect(e.Engagements(e.name("kubeconfig.yaml", "us"))).To(Equal(1))
	e.stop()
	g.Eventually(us.Connections).Should(BeZero())
	g.Expect(e.provider.Status()).To(BeEmpty())
}

func TestDefaultFiles(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for _, sub := range []string{"home/.kube", "work"} {
		g.Expect(os.MkdirAll(filepath.Join(dir, sub), 0o700)).To(Succeed())
	}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	home := filepath.Join(dir, "home", ".kube", "config")
	t.Setenv("KUBECONFIG", strings.Join([]string{filepath.Join(dir, "one"), filepath.Join(dir, "missing"), "", home}, string(os.PathListSeparator)))
	t.Chdir(filepath.Join(dir, "work"))
	member := mctest.New(t)
	want := []string{filepath.Join(dir, "one"), home}
	for _, name := range []string{"kubeconfig.yaml", "kubeconfig.yml", "a.kubeconfig", "a.kubeconfig.yaml", "a.kubeconfig.yml"} {
		want = append(want, filepath.Join(dir, "work", name))
	}
	for _, path := range append(slices.Clone(want), filepath.Join(dir, "work", "a.yaml")) {
		g.Expect(os.WriteFile(path, providertest.Kubeconfig(t, member.Config()), 0o600)).To(Succeed())
	}
	provider, err := file.New(file.Options{Separator: "|", Connection: providertest.Quick()})
	g.Expect(err).NotTo(HaveOccurred())
	defer runFor(t, provider)()
	g.Expect(provider.RunOnce(t.Context(), noAware{})).To(Succeed())
	var names []string
	for _, name := range provider.ClusterNames() {
		names = append(names, strings.TrimSuffix(name.String(), "|main"))
	}
	g.Expect(names).To(ConsistOf(want))
}

// noAware ignores clusters.
type noAware struct{}

func (noAware) Engage(context.Context, multicluster.ClusterName, cluster.Cluster) error { return nil }

// runFor starts a provider until the function is called.
func runFor(t *testing.T, provider *file.Provider) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- provider.Start(ctx, noAware{}) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestGlobs(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t, func(o *file.Options) { o.KubeconfigGlobs = []string{"*/conf*", "*.yaml"} })
	member := mctest.New(t)
	g.Expect(os.MkdirAll(filepath.Join(e.dir, "eu"), 0o700)).To(Succeed())
	e.create("eu/config", member.Config())
	e.create("eu/other", member.Config())
	e.create("a.yaml", member.Config())
	providertest.AwaitReady(t, e.provider, e.name("eu/config", "main"))
	providertest.AwaitReady(t, e.provider, e.name("a.yaml", "main"))
	g.Expect(e.provider.Status()).To(HaveLen(2))
	g.Expect(os.MkdirAll(filepath.Join(e.dir, "us"), 0o700)).To(Succeed())
	e.create("us/config", member.Config())
	providertest.AwaitReady(t, e.provider, e.name("us/config", "main"))
}

func TestInvalidOptions(t *testing.T) {
	for _, test := range []struct {
		name    string
		options file.Options
		want    string
	}{
		{"a glob", file.Options{KubeconfigGlobs: []string{"["}}, `file provider: "[" is not a pattern of file names`},
		{"an absolute glob", file.Options{KubeconfigGlobs: []string{"/a"}}, `file provider: "/a" is not a pattern of file names`},
		{"an empty path", file.Options{KubeconfigDirs: []string{""}}, "file provider: a path must not be empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := file.New(test.options)
			NewWithT(t).Expect(err).To(MatchError(test.want))
		})
	}
}

func TestRunOnce(t *testing.T) {
	g := NewWithT(t)
	e := &env{t: t, dir: t.TempDir()}
	e.newProvider()
	eu, us := mctest.New(t), mctest.New(t)
	e.create("eu.kubeconfig", eu.Config())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g.Expect(e.provider.RunOnce(ctx, noAware{})).To(Succeed())
	g.Expect(e.provider.ClusterNames()).To(ConsistOf(e.name("eu.kubeconfig", "main")))

	e.create("us.kubeconfig", us.Config())
	e.write("bad.kubeconfig", "a: [")
	err := e.provider.RunOnce(ctx, noAware{})
	g.Expect(err).To(MatchError(And(ContainSubstring("bad.kubeconfig: is not valid YAML"), Not(ContainSubstring("us.kubeconfig")))))
	g.Expect(e.provider.ClusterNames()).To(ConsistOf(e.name("eu.kubeconfig", "main"), e.name("us.kubeconfig", "main")))

	// Start takes over, and follows the files.
	stop := runFor(t, e.provider)
	g.Expect(os.Remove(filepath.Join(e.dir, "us.kubeconfig"))).To(Succeed())
	g.Eventually(e.isGone(e.name("us.kubeconfig", "main"))).Should(BeTrue())
	stop()
	g.Eventually(eu.Connections).Should(BeZero())
	g.Expect(e.provider.Start(t.Context(), noAware{})).To(MatchError(ContainSubstring("more than once")))
	g.Expect(e.provider.RunOnce(t.Context(), noAware{})).To(Succeed(), "nothing is left to do")
}

func TestRunOnceEndsWithContext(t *testing.T) {
	g := NewWithT(t)
	e := &env{t: t, dir: t.TempDir()}
	e.newProvider()
	member := mctest.New(t)
	member.Fault(mctest.Hang)
	e.create("a.kubeconfig", member.Config())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.provider.RunOnce(ctx, noAware{}) }()
	g.Eventually(e.provider.Status).ShouldNot(BeEmpty())
	cancel()
	g.Eventually(ended).Should(Receive(MatchError(context.Canceled)))
	g.Eventually(e.provider.Status).Should(BeEmpty())
}

func TestRemove(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member, other := mctest.New(t), mctest.New(t)
	e.create("a.kubeconfig", member.Config())
	e.create("b.kubeconfig", other.Config())
	name := e.name("a.kubeconfig", "main")
	e.Works(t, name, member)
	e.provider.Remove("unknown")
	e.provider.Remove(name)
	g.Eventually(e.isGone(name)).Should(BeTrue())
	e.create("c.kubeconfig", other.Config()) // it stays removed when others change
	e.Works(t, e.name("c.kubeconfig", "main"), other)
	g.Expect(e.isGone(name)()).To(BeTrue())
	e.write("a.kubeconfig", string(providertest.Kubeconfig(t, member.Config()))+"\n# changed\n")
	e.Works(t, name, member)
	g.Expect(e.Engagements(name)).To(Equal(2))
}

func TestSeveralProviders(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	e.create("a.kubeconfig", member.Config())
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	g.Expect(os.WriteFile(path, providertest.Kubeconfig(t, member.Config()), 0o600)).To(Succeed())
	other, err := file.New(file.Options{KubeconfigFiles: []string{path}, Connection: providertest.Quick()})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- other.Run(ctx, e.mgr) }()
	go func() { ended <- e.provider.Run(ctx, e.mgr) }() // the manager's own
	providertest.AwaitReady(t, e.provider, e.name("a.kubeconfig", "main"))
	providertest.AwaitReady(t, other, multicluster.ClusterName(path+"+main"))
	cancel()
	g.Expect(<-ended).To(Succeed())
	g.Expect(<-ended).To(Succeed())
	e.Works(t, e.name("a.kubeconfig", "main"), member)
}

func TestRestart(t *testing.T) {
	e := newEnv(t)
	member := mctest.New(t)
	e.create("a.kubeconfig", member.Config())
	e.Works(t, e.name("a.kubeconfig", "main"), member)
	e.stop()
	e.newProvider()
	e.start()
	defer e.stop()
	providertest.Await(t, "the ConfigMap is reconciled again", func() bool { return e.Reconciled(e.name("a.kubeconfig", "main"), "object-1") })
}
