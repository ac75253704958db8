// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// quickProbes sets short times for probes.
func quickProbes(o *fleet.Options) {
	o.Connection.Probe = fleet.ProbeOptions{Interval: 20 * time.Millisecond, Timeout: 200 * time.Millisecond, FailureThreshold: 3}
}

func TestDegradedAndRecovered(t *testing.T) {
	for _, fault := range []struct {
		name  string
		fault mctest.Fault
	}{
		{"connection refused", mctest.Refuse},
		{"no response", mctest.Hang},
		{"packets are dropped", mctest.Freeze},
		{"503", mctest.Unavailable},
		{"401", mctest.Unauthorized},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := mctest.New(t)
			g.Expect(c.Create(configMap("a"))).To(Succeed())
			env := start(t, []*mctest.Cluster{c}, quickProbes)
			env.source.put(profile("eu", c.Config().Host))
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
			cl, err := env.Get(t.Context(), "fleet/eu")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(names(t, g, cl)).To(ConsistOf("a"))

			c.Fault(fault.fault)
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
			g.Expect(env.status("fleet/eu").LastError).NotTo(BeEmpty())
			g.Expect(env.aware.healthOf("fleet/eu")).To(Equal([]bool{false}))
			_, err = env.Get(t.Context(), "fleet/eu")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(names(t, g, cl)).To(ConsistOf("a"), "caches can be read")

			c.Clear()
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
			g.Eventually(func() []bool { return env.aware.healthOf("fleet/eu") }).Should(Equal([]bool{false, true}))
			g.Expect(env.status("fleet/eu").LastError).To(BeEmpty())
			g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
		})
	}
}

func TestBusyClusterIsReady(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, quickProbes)
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	c.Fault(mctest.TooManyRequests(time.Second))
	before := c.Requests("get", "namespaces")
	g.Eventually(func() int { return c.Requests("get", "namespaces") }).Should(BeNumerically(">", before+5))
	g.Expect(env.state("fleet/eu")()).To(Equal(fleet.Ready))
	g.Expect(env.aware.healthOf("fleet/eu")).To(BeEmpty())
}

func TestDropAfter(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, quickProbes, func(o *fleet.Options) { o.Connection.Probe.DropAfter = 100 * time.Millisecond })
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	first := env.aware.of("fleet/eu")[0]

	c.Fault(mctest.Refuse)
	g.Eventually(first.ctx.Done()).Should(BeClosed())
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Backoff))
	c.Clear()
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(2))
}

func TestRebuiltClusterIsReengaged(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	g.Expect(c.Create(configMap("only-in-old-cluster"))).To(Succeed())
	env := start(t, []*mctest.Cluster{c}, quickProbes)
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(names(t, g, env.aware.of("fleet/eu")[0].cluster)).To(ConsistOf("only-in-old-cluster"))

	c.Rebuild()
	g.Eventually(func() []engagement { return env.aware.of("fleet/eu") }).Should(HaveLen(2))
	g.Expect(names(t, g, env.aware.of("fleet/eu")[1].cluster)).To(BeEmpty())
}

func TestRebuiltBusyClusterIsReengaged(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.Probe.Interval = 200 * time.Millisecond })
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster
	g.Expect(names(t, g, cl)).To(BeEmpty()) // starts a watch

	c.Rebuild()
	g.Eventually(func() int {
		_ = cl.GetAPIReader().Get(t.Context(), key("any"), &corev1.ConfigMap{})
		return len(env.aware.of("fleet/eu"))
	}).WithPolling(10 * time.Millisecond).Should(Equal(2))
}

// Permissions on kube-system that come after the cluster are used.
func TestPermissionsComeLater(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.Fault(mctest.Forbidden.On("namespaces"))
	env := start(t, []*mctest.Cluster{c}, quickProbes)
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(env.status("fleet/eu").UID).To(BeEmpty())
	uid := func() string { return env.status("fleet/eu").UID }
	c.Clear()
	g.Eventually(uid).Should(BeEquivalentTo(c.UID()))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
	c.Rebuild()
	g.Eventually(uid).Should(BeEquivalentTo(c.UID()))
	g.Eventually(func() []engagement { return env.aware.of("fleet/eu") }).Should(HaveLen(2))
}

func TestActiveClusterIsNotProbed(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.Probe.Interval = 200 * time.Millisecond })
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl, err := env.Get(t.Context(), "fleet/eu")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(t, g, cl)).To(BeEmpty()) // starts a watch

	// Events come more often than probes. On a busy machine this may take more than
	// one try.
	probes := func() int { return c.Requests("get", "namespaces") }
	next := 0
	g.Eventually(func(g Gomega) {
		before, last := probes(), time.Now()
		for range 50 {
			next++
			event := fmt.Sprintf("event-%d", next)
			g.Expect(c.Create(configMap(event))).To(Succeed())
			g.Eventually(func() error {
				return cl.GetClient().Get(t.Context(), key(event), &corev1.ConfigMap{})
			}).Should(Succeed())
			g.Expect(time.Since(last)).To(BeNumerically("<", 100*time.Millisecond), "the machine is too slow")
			last = time.Now()
		}
		g.Expect(probes()).To(Equal(before))
	}).Should(Succeed())
	before := probes()
	g.Eventually(probes).Should(BeNumerically(">", before), "a cluster that sends nothing is probed")
}

func TestNoProbes(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.Probe.Interval = -1 })
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Consistently(func() int { return c.Requests("get", "namespaces") }, "200ms").Should(Equal(1), "only the one that connects")
}

func TestRevokedCredentialIsReplaced(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.AddToken("old", "user", "system:masters")
	c.AddToken("new", "user", "system:masters")
	env := start(t, nil, quickProbes, func(o *fleet.Options) { o.Connection.Probe.FailureThreshold = 50 }) // which take 1 s
	env.credentials.set(c.Config().Host, c.ConfigFor("old"))
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster

	env.credentials.set(c.Config().Host, c.ConfigFor("new"))
	c.RevokeToken("old")
	g.Eventually(func() string { return cl.GetConfig().BearerToken }).Should(Equal("new"))
	g.Expect(env.aware.healthOf("fleet/eu")).To(BeEmpty(), "the cluster stayed Ready")
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))

	c.RevokeToken("new") // there is no other token
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
	g.Expect(env.status("fleet/eu").LastError).To(ContainSubstring("rejected the credentials (401)"))
	c.AddToken("newest", "user", "system:masters")
	env.credentials.set(c.Config().Host, c.ConfigFor("newest"))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
}

func TestRefusedCredentialsBesideWatch(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.AddToken("t", "user", "system:masters")
	env := start(t, nil, func(o *fleet.Options) { o.Connection.Probe.Interval = 200 * time.Millisecond })
	config := c.ConfigFor("t")
	env.credentials.set(config.Host, config)
	env.source.put(profile("eu", config.Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster
	g.Expect(names(t, g, cl)).To(BeEmpty()) // starts a watch
	resolved := env.credentials.count()

	// The watch goes on, and has events all the time.
	c.RevokeToken("t")
	n := 0
	g.Eventually(func() fleet.State {
		n++
		g.Expect(c.Create(configMap(fmt.Sprint("event-", n)))).To(Succeed())
		_ = cl.GetAPIReader().Get(t.Context(), key("any"), &corev1.ConfigMap{})
		return env.status("fleet/eu").State
	}).WithPolling(10 * time.Millisecond).Should(Equal(fleet.Degraded))
	g.Expect(env.status("fleet/eu").Reason).To(Equal(fleet.Unauthorized))
	g.Expect(env.credentials.count()).To(BeNumerically(">", resolved), "the profile was resolved again")
	g.Expect(c.OpenWatches("configmaps")).To(Equal(1))
}

func TestRetryAfter(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.Fault(mctest.TooManyRequests(2 * time.Second))
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.MaxBackoff = time.Minute })
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Backoff))
	refused := time.Now()
	g.Expect(env.status("fleet/eu").LastError).To(ContainSubstring("too many requests (429)"))
	c.Clear()
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(time.Since(refused)).To(BeNumerically(">", 1500*time.Millisecond))
	g.Expect(c.Requests("get", "namespaces")).To(Equal(2))
}
