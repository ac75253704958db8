// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
	"github.com/rollcall-dev/rollcall/providers/kind"
)

func TestClustersComeAndGo(t *testing.T) {
	for _, name := range []string{"docker", "nerdctl", "finch", "podman"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := &env{engine: newEngine(t, name)}
			eu, us, later := mctest.New(t), mctest.New(t), mctest.New(t)
			e.create("eu", eu.Config())
			e.create("us", us.Config())
			e.start()
			e.Works(t, "eu", eu)
			e.Works(t, "us", us)
			e.create("later", later.Config())
			e.Works(t, "later", later)
			g.Expect(e.provider.ListClusters()).To(ConsistOf(
				multicluster.ClusterName("eu"), multicluster.ClusterName("us"), multicluster.ClusterName("later")))

			e.delete("eu")
			g.Eventually(func() bool { return e.isGone("eu") }).Should(BeTrue())
			g.Eventually(eu.Connections).Should(BeZero())
			_, err := e.provider.Get(t.Context(), "eu")
			g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
			e.Works(t, "us", us)
			g.Expect(e.Engagements("us")).To(Equal(1))

			e.stop()
			g.Eventually(us.Connections).Should(BeZero())
			g.Expect(e.provider.Status()).To(BeEmpty())
		})
	}
}

func TestChoiceOfTheEngine(t *testing.T) {
	for _, test := range []struct {
		name, variable string
		commands       []string
		want           string
	}{
		{"the first in kind's order", "", []string{"podman", "finch", "nerdctl", "docker"}, "docker"},
		{"that of the variable", "podman", []string{"docker", "podman"}, "podman"},
		{"a variable that kind does not know", "other", []string{"docker", "podman"}, "docker"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := &env{engine: newEngine(t, test.commands...)}
			t.Setenv("KIND_EXPERIMENTAL_PROVIDER", test.variable)
			member := mctest.New(t)
			e.create("eu", member.Config())
			e.start()
			e.Works(t, "eu", member)
			NewWithT(t).Expect(e.log.Count("Found a container engine", `"command"="`+test.want+`"`)).To(Equal(1))
			unknown := map[bool]int{true: 1}[test.variable == "other"]
			NewWithT(t).Expect(e.log.Count("Ignoring unknown value of KIND_EXPERIMENTAL_PROVIDER", `"value"="other"`)).To(Equal(unknown))
		})
	}
}

// An engine that hangs at the start must not lead to another one, with other clusters.
func TestSlowEngineIsNotSkipped(t *testing.T) {
	g := NewWithT(t)
	e := &env{engine: newEngine(t, "docker", "podman")}
	member := mctest.New(t)
	e.create("eu", member.Config())
	e.set("hang-docker-v", "")
	e.start(func(o *kind.Options) { o.Timeout = 300 * time.Millisecond })
	g.Eventually(func() int { return e.log.Count("docker -v did not end within 300ms") }).Should(Equal(1))
	e.remove("hang-docker-v")
	e.Works(t, "eu", member)
	g.Expect(e.log.Count("Found a container engine", `"command"="docker"`)).To(Equal(1))
}

// The defaults notice a cluster in time.
func TestDiscoveredWithinTwoSeconds(t *testing.T) {
	g := NewWithT(t)
	e := &env{engine: newEngine(t, "docker")}
	e.provider = kind.New()
	e.newManager()
	e.stop = mctest.StartManager(t, e.mgr)
	first, second := mctest.New(t), mctest.New(t)
	e.create("first", first.Config())
	e.Works(t, "first", first)
	start := time.Now()
	e.create("second", second.Config())
	g.Eventually(func() error {
		_, err := e.provider.Get(t.Context(), "second")
		return err
	}).Should(Succeed())
	took := time.Since(start)
	t.Logf("engaged after %v", took)
	g.Expect(took).To(BeNumerically("<", 2*time.Second))
}

func TestPrefixes(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t, func(o *kind.Options) { o.Prefix = "fleet-" })
	options := quick()
	options.Prefix = "other-"
	other := kind.New(options)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- other.Run(ctx, e.mgr) }() // not the manager's provider
	alpha, beta, ignored := mctest.New(t), mctest.New(t), mctest.New(t)
	e.create("ignored", ignored.Config())
	e.create("fleet-alpha", alpha.Config())
	e.create("other-beta", beta.Config())
	e.Works(t, "fleet-alpha", alpha)
	providertest.AwaitReady(t, other, "other-beta")
	g.Expect(e.Engagements("other-beta")).To(Equal(1))
	g.Expect(e.provider.ClusterNames()).To(ConsistOf(multicluster.ClusterName("fleet-alpha")))
	g.Expect(other.ClusterNames()).To(ConsistOf(multicluster.ClusterName("other-beta")))
	g.Expect(e.commands("exec --privileged ignored-")).To(BeZero())
	cancel()
	g.Expect(<-ended).To(Succeed())
	e.Works(t, "fleet-alpha", alpha)
}

func TestWaysToStart(t *testing.T) {
	for _, test := range []struct {
		name string
		run  bool
	}{
		{"by the manager alone", false},
		{"with Run", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := &env{engine: newEngine(t, "docker"), provider: kind.New(quick())}
			e.newManager()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			if test.run {
				go func() { ended <- e.provider.Run(ctx, e.mgr) }()
			} else {
				ended <- nil
			}
			stop := mctest.StartManager(t, e.mgr)
			member := mctest.New(t)
			e.create("eu", member.Config())
			e.Works(t, "eu", member)
			g.Expect(e.Engagements("eu")).To(Equal(1))
			cancel()
			g.Expect(<-ended).To(Succeed())
			stop()
		})
	}
}

func TestRestart(t *testing.T) {
	e := newEnv(t)
	member := mctest.New(t)
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	e.stop()
	e.start()
	providertest.Await(t, "the ConfigMap is reconciled again", func() bool { return e.Reconciled("eu", "object-1") })
}

func TestIndexes(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	calls := func(object client.Object) []string { return []string{object.GetName()} }
	g.Expect(e.provider.IndexField(t.Context(), &corev1.ConfigMap{}, "before", calls)).To(Succeed())
	member := mctest.New(t)
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	g.Expect(e.provider.IndexField(t.Context(), &corev1.Secret{}, "after", calls)).To(Succeed())
	cl, err := e.provider.Get(t.Context(), "eu")
	g.Expect(err).NotTo(HaveOccurred())
	list := &corev1.ConfigMapList{}
	g.Expect(cl.GetClient().List(t.Context(), list, client.MatchingFields{"before": "object-1"})).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))
	g.Eventually(func() error {
		return cl.GetClient().List(t.Context(), &corev1.SecretList{}, client.MatchingFields{"after": "x"})
	}).Should(Succeed())
}

// Names that are no names of objects are kept, and the profile has no secret.
func TestProfile(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	config := member.Config()
	e.create("Fleet_A.1", config)
	e.Works(t, "Fleet_A.1", member)
	status := providertest.StatusOf(e.provider, "Fleet_A.1")
	g.Expect(status.Profile).To(Equal(inventory.Key{Namespace: "default", Name: inventory.ProfileName("Fleet_A.1")}))
	g.Expect(status.Server).To(Equal(config.Host))
	g.Expect(e.log.Count(config.BearerToken)).To(BeZero())
}

func TestInvalidOptions(t *testing.T) {
	g := NewWithT(t)
	for want, options := range map[string][]kind.Options{
		"kind provider: New was called with 2 Options: at most one is allowed": {{}, {}},
		"kind provider: invalid Interval -1s: must not be negative":            {{Interval: -time.Second}},
		"kind provider: invalid Timeout -1s: must not be negative":             {{Timeout: -time.Second}},
	} {
		p := kind.New(options...)
		g.Expect(p.Start(t.Context(), nil)).To(MatchError(want))
		_, err := p.Get(t.Context(), "x")
		g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
	}
}
