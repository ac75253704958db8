// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// twoOfThree returns a fleet of three clusters. One of them cannot be reached.
func twoOfThree(t *testing.T) (*testEnv, *mctest.Fleet) {
	t.Helper()
	g := NewWithT(t)
	f := mctest.NewFleet(t, 3)
	f.Cluster(2).Fault(mctest.Refuse)
	env := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour })
	for _, c := range f.Clusters() {
		p := profile(c.Name(), c.Config().Host)
		p.Status.Version.Kubernetes = "v1.37.1"
		p.Status.Properties = []v1alpha1.Property{
			{Name: inventory.PropertyClusterID, Value: "id-of-" + c.Name()},
			{Name: inventory.PropertyClusterSet, Value: "<b>production</b>"},
		}
		env.source.put(p)
	}
	g.Eventually(env.state(name(f.Cluster(0)))).Should(Equal(fleet.Ready))
	g.Eventually(env.state(name(f.Cluster(1)))).Should(Equal(fleet.Ready))
	g.Eventually(env.state(name(f.Cluster(2)))).Should(Equal(fleet.Backoff))
	return env, f
}

func TestStatusHandlerJSON(t *testing.T) {
	g := NewWithT(t)
	env, f := twoOfThree(t)
	cl, err := env.Get(t.Context(), name(f.Cluster(0)))
	g.Expect(err).NotTo(HaveOccurred())
	names(t, g, cl) // starts a watch

	get := func(target, accept string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(http.MethodGet, target, nil)
		req.Header.Set("Accept", accept)
		resp := httptest.NewRecorder()
		env.StatusHandler().ServeHTTP(resp, req)
		return resp
	}
	for _, resp := range []*httptest.ResponseRecorder{get("/fleet?format=json", ""), get("/fleet", "application/json")} {
		g.Expect(resp.Header().Get("Content-Type")).To(Equal("application/json"))
		var body struct {
			Clusters []fleet.ClusterStatus `json:"clusters"`
		}
		g.Expect(json.Unmarshal(resp.Body.Bytes(), &body)).To(Succeed())
		g.Expect(body.Clusters).To(HaveLen(3))
		first, last := body.Clusters[0], body.Clusters[2]
		g.Expect(first.Name).To(Equal(name(f.Cluster(0))), "sorted by name")
		g.Expect(first.State).To(Equal(fleet.Ready))
		g.Expect(first.Server).To(Equal(f.Cluster(0).Config().Host))
		g.Expect(first.UID).To(BeEquivalentTo(f.Cluster(0).UID()))
		g.Expect(first.ClusterID).To(Equal("id-of-cluster-0"))
		g.Expect(first.ClusterSet).To(Equal("<b>production</b>"))
		g.Expect(first.Version).To(Equal("v1.37.1"))
		g.Expect(first.OpenWatches).To(Equal(1))
		g.Expect(first.Queued).To(Equal(7))
		g.Expect(first.Since).To(BeTemporally("~", time.Now(), mctest.Timeout))
		g.Expect(last.State).To(Equal(fleet.Backoff))
		g.Expect(last.LastError).NotTo(BeEmpty())
		g.Expect(resp.Body.String()).NotTo(ContainSubstring(f.Cluster(0).AdminToken()))
	}
}

func TestStatusHandlerHTML(t *testing.T) {
	g := NewWithT(t)
	env, f := twoOfThree(t)
	resp := httptest.NewRecorder()
	env.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodGet, "/fleet", nil))
	g.Expect(resp.Header().Get("Content-Type")).To(HavePrefix("text/html"))
	text := resp.Body.String()
	g.Expect(text).To(ContainSubstring("3 clusters"))
	g.Expect(text).To(ContainSubstring("2 Ready"))
	g.Expect(text).To(ContainSubstring("1 Backoff"))
	g.Expect(text).To(ContainSubstring(f.Cluster(0).Config().Host))
	g.Expect(text).To(ContainSubstring("&lt;b&gt;production"), "values of profiles are escaped")

	resp = httptest.NewRecorder()
	env.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodPost, "/fleet", nil))
	g.Expect(resp.Code).To(Equal(http.StatusMethodNotAllowed))
}

func TestDuplicatesAreShown(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) {
		o.ClusterName = func(p *inventory.Profile) multicluster.ClusterName {
			return multicluster.ClusterName(cmp.Or(p.Labels["name"], "one"))
		}
	})
	second := profile("b", c.Config().Host)
	env.source.put(profile("a", c.Config().Host), second, profile("c", c.Config().Host))
	g.Eventually(env.state("one")).Should(Equal(fleet.Ready))
	waits := func(profile, other string) types.GomegaMatcher {
		return And(HaveField("Name", multicluster.ClusterName("one")), HaveField("Profile.Name", profile), HaveField("State", fleet.Pending),
			HaveField("LastError", ContainSubstring("profile fleet/"+other+" has the same cluster name")), HaveField("Since", Not(BeZero())))
	}
	g.Eventually(env.Status).Should(HaveLen(3))
	g.Expect(env.Status()[0].Profile.Name).To(Equal("a"))
	g.Expect(env.Status()[1:]).To(ConsistOf(waits("b", "a"), waits("c", "a")))
	g.Expect(gauges("rollcall_fleet_clusters")).To(And(HaveKeyWithValue("Ready", 1.0), HaveKeyWithValue("Pending", 2.0)))
	g.Expect(env.ReadyCheck(1)(nil)).To(Succeed(), "duplicates do not count")
	resp := httptest.NewRecorder()
	env.StatusHandler().ServeHTTP(resp, httptest.NewRequest(http.MethodGet, "/fleet", nil))
	g.Expect(resp.Body.String()).To(And(ContainSubstring("fleet/b"), ContainSubstring("profile fleet/a has the same cluster name"), ContainSubstring("2 Pending")))

	described := second.DeepCopy()
	described.Status.Version.Kubernetes = "v1.37.1"
	env.source.put(described)
	g.Eventually(env.Status).Should(ContainElement(And(HaveField("Profile.Name", "b"), HaveField("Version", "v1.37.1"))))
	env.source.remove("a")
	g.Eventually(func() string { return env.status("one").Profile.Name }).Should(Equal("b"))
	g.Expect(env.Status()).To(HaveLen(2))
	g.Expect(env.Status()[1]).To(waits("c", "b"))

	renamed := profile("c", c.Config().Host)
	renamed.Labels = map[string]string{"name": "two"}
	env.source.put(renamed)
	g.Eventually(env.Status).ShouldNot(ContainElement(HaveField("LastError", ContainSubstring("has the same cluster name"))))
	env.source.put(profile("d", c.Config().Host))
	env.stop()
	g.Expect(env.Status()).To(BeEmpty())
}

func TestReadyCheckShare(t *testing.T) {
	g := NewWithT(t)
	unread, err := fleet.New(fleet.Options{Source: newFakeSource(), Credentials: newFakeMethod()})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unread.ReadyCheck(0)(nil)).To(MatchError(ContainSubstring("not been listed")))

	env, _ := twoOfThree(t)
	g.Expect(env.ReadyCheck(0.5)(nil)).To(Succeed())
	g.Expect(env.ReadyCheck(2.0 / 3)(nil)).To(Succeed())
	g.Expect(env.ReadyCheck(0.9)(nil)).To(MatchError(ContainSubstring("2 of 3 clusters are ready, need 90 %")))
}

func TestReadyCheckIgnoresLeaving(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	ended := make(chan struct{})
	env := start(t, []*mctest.Cluster{c}, withClusterStart(func(ctx context.Context, cl cluster.Cluster) error {
		defer func() { <-ended }()
		return cl.Start(ctx)
	}))
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	env.source.remove("eu")
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Leaving))
	g.Expect(env.ReadyCheck(1)(nil)).To(Succeed())
	close(ended)
}

func TestClusterMetrics(t *testing.T) {
	g := NewWithT(t)
	g.Expect(gauges("rollcall_fleet_clusters")).To(BeEmpty(), "no fleet runs")
	env, _ := twoOfThree(t)
	g.Expect(gauges("rollcall_fleet_clusters")).To(And(
		HaveKeyWithValue("Ready", 2.0), HaveKeyWithValue("Backoff", 1.0), HaveKeyWithValue("Degraded", 0.0)))
	g.Expect(gauges("rollcall_fleet_transitions_total")["Ready"]).To(BeNumerically(">=", 2))
	env.stop()
	g.Expect(gauges("rollcall_fleet_clusters")).To(BeEmpty())
}

// gauges returns the values of a metric by state.
func gauges(name string) map[string]float64 {
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		return nil
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			state := ""
			for _, label := range m.GetLabel() {
				if label.GetName() == "state" {
					state = label.GetValue()
				}
			}
			values[state] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}
