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

// quickProbes makes what takes minutes take moments.
func quickProbes(o *fleet.Options) {
	o.Connection.Probe = fleet.ProbeOptions{Interval: 20 * time.Millisecond, Timeout: 200 * time.Millisecond, FailureThreshold: 3}
}

func TestAClusterThatStopsAnsweringIsDegradedUntilItAnswersAgain(t *testing.T) {
	for _, fault := range []struct {
		name  string
		fault mctest.Fault
	}{
		{"it refuses connections", mctest.Refuse},
		{"it hangs", mctest.Hang},
		{"its network swallows everything", mctest.Freeze},
		{"it is not available", mctest.Unavailable},
		{"it does not accept the credentials", mctest.Unauthorized},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := mctest.New(t)
			g.Expect(c.Create(configMap("a"))).To(Succeed())
			w := start(t, []*mctest.Cluster{c}, quickProbes)
			w.list.put(profile("eu", c.Config().Host))
			g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
			cl, err := w.Get(t.Context(), "fleet/eu")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(names(t, g, cl)).To(ConsistOf("a"))

			c.Fault(fault.fault)
			g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Degraded))
			g.Expect(w.status("fleet/eu").LastError).NotTo(BeEmpty())
			g.Expect(w.engagements.healthOf("fleet/eu")).To(Equal([]bool{false}))
			_, err = w.Get(t.Context(), "fleet/eu")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(names(t, g, cl)).To(ConsistOf("a"), "what is cached can be read")

			c.Clear()
			g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
			g.Eventually(func() []bool { return w.engagements.healthOf("fleet/eu") }).WithTimeout(patience).Should(Equal([]bool{false, true}))
			g.Expect(w.status("fleet/eu").LastError).To(BeEmpty())
			g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(1))
		})
	}
}

func TestAClusterThatHasTooManyRequestsIsNotDegraded(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, quickProbes)
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	c.Fault(mctest.TooManyRequests(time.Second))
	before := c.Requests("get", "namespaces")
	g.Eventually(func() int { return c.Requests("get", "namespaces") }).WithTimeout(patience).Should(BeNumerically(">", before+5))
	g.Expect(w.state("fleet/eu")()).To(Equal(fleet.Ready))
	g.Expect(w.engagements.healthOf("fleet/eu")).To(BeEmpty())
}

func TestAClusterThatIsDownForLongIsDroppedAndComesBack(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, quickProbes, func(o *fleet.Options) { o.Connection.Probe.DropAfter = 100 * time.Millisecond })
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	first := w.engagements.of("fleet/eu")[0]

	c.Fault(mctest.Refuse)
	g.Eventually(first.ctx.Done()).WithTimeout(patience).Should(BeClosed())
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Backoff))
	c.Clear()
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(2))
}

func TestAClusterThatIsRebuiltInPlaceIsEngagedAnew(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	g.Expect(c.Create(configMap("only-in-the-old"))).To(Succeed())
	w := start(t, []*mctest.Cluster{c}, quickProbes)
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	g.Expect(names(t, g, w.engagements.of("fleet/eu")[0].cluster)).To(ConsistOf("only-in-the-old"))

	c.Rebuild()
	g.Eventually(func() []engagement { return w.engagements.of("fleet/eu") }).WithTimeout(patience).Should(HaveLen(2))
	g.Expect(names(t, g, w.engagements.of("fleet/eu")[1].cluster)).To(BeEmpty())
}

func TestAClusterThatIsRebuiltInPlaceCannotHideBehindSignsOfLife(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.Probe.Interval = 200 * time.Millisecond })
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl := w.engagements.of("fleet/eu")[0].cluster
	g.Expect(names(t, g, cl)).To(BeEmpty()) // starts a watch

	c.Rebuild()
	g.Eventually(func() int {
		_ = cl.GetAPIReader().Get(t.Context(), key("any"), &corev1.ConfigMap{})
		return len(w.engagements.of("fleet/eu"))
	}).WithTimeout(patience).WithPolling(10 * time.Millisecond).Should(Equal(2))
}

func TestAClusterThatShowsLifeIsNotProbed(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.Probe.Interval = 200 * time.Millisecond })
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl, err := w.Get(t.Context(), "fleet/eu")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(t, g, cl)).To(BeEmpty()) // starts a watch

	// Events that come more often than probes are due. On a busy machine it may
	// take another try to have them come in time.
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
			}).WithTimeout(patience).Should(Succeed())
			g.Expect(time.Since(last)).To(BeNumerically("<", 100*time.Millisecond), "too slow to tell")
			last = time.Now()
		}
		g.Expect(probes()).To(Equal(before))
	}).WithTimeout(2 * patience).Should(Succeed())
	before := probes()
	g.Eventually(probes).WithTimeout(patience).Should(BeNumerically(">", before), "silence is probed")
}

func TestProbesCanBeTurnedOff(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.Probe.Interval = -1 })
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	g.Consistently(func() int { return c.Requests("get", "namespaces") }, "200ms").Should(Equal(1), "the one at the start")
}

func TestACredentialThatIsNotAcceptedAnyMoreIsResolvedAnew(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.AddToken("old", "somebody", "system:masters")
	c.AddToken("new", "somebody", "system:masters")
	w := start(t, nil, quickProbes, func(o *fleet.Options) { o.Connection.Probe.FailureThreshold = 50 }) // which take a second
	w.method.lead(c.Config().Host, c.ConfigFor("old"))
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl := w.engagements.of("fleet/eu")[0].cluster

	w.method.lead(c.Config().Host, c.ConfigFor("new"))
	c.RevokeToken("old")
	g.Eventually(func() string { return cl.GetConfig().BearerToken }).WithTimeout(patience).Should(Equal("new"))
	g.Expect(w.engagements.healthOf("fleet/eu")).To(BeEmpty(), "it has not been degraded")
	g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(1))

	c.RevokeToken("new") // there is no other
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Degraded))
	g.Expect(w.status("fleet/eu").LastError).To(ContainSubstring("rejected the credentials (401)"))
	c.AddToken("newest", "somebody", "system:masters")
	w.method.lead(c.Config().Host, c.ConfigFor("newest"))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(1))
}
