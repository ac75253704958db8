// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// patience is how long a condition is waited for.
const patience = 20 * time.Second

func TestAClusterIsEngagedAndLeavesWithItsProfile(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c})

	get := func() error {
		_, err := w.Get(t.Context(), "fleet/eu")
		return err
	}
	g.Eventually(get).WithTimeout(patience).Should(And(MatchError(multicluster.ErrClusterNotFound), Not(MatchError(multicluster.ErrClusterNotReady))))

	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl, err := w.Get(t.Context(), "fleet/eu")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.ClusterNames()).To(ConsistOf(multicluster.ClusterName("fleet/eu")))
	g.Expect(w.status("fleet/eu").Server).To(Equal(c.Config().Host))
	engaged := w.engagements.of("fleet/eu")
	g.Expect(engaged).To(HaveLen(1))
	g.Expect(engaged[0].cluster).To(BeIdenticalTo(cl))

	namespaces := &corev1.NamespaceList{}
	g.Expect(cl.GetClient().List(t.Context(), namespaces)).To(Succeed())
	g.Expect(namespaces.Items).NotTo(BeEmpty())
	g.Expect(c.OpenWatches("namespaces")).To(Equal(1))

	w.list.remove("eu")
	g.Eventually(engaged[0].ctx.Done()).WithTimeout(patience).Should(BeClosed())
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(BeEmpty())
	_, err = w.Get(t.Context(), "fleet/eu")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
	g.Eventually(c.Connections).WithTimeout(patience).Should(BeZero())
	g.Expect(cl.GetAPIReader().List(t.Context(), namespaces)).To(MatchError(ContainSubstring("disengaged")))
}

func TestWhatDoesNotChangeTheConnectionTouchesNothing(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c})
	p := profile("eu", c.Config().Host)
	w.list.put(p)
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	resolved, cl := w.method.count(), w.engagements.of("fleet/eu")[0].cluster

	for i := range 100 {
		p = p.DeepCopy()
		p.Labels = map[string]string{"beat": fmt.Sprint(i)}
		p.Status.Properties = []v1alpha1.Property{{Name: "beat", Value: fmt.Sprint(i), LastObservedTime: metav1.Now()}}
		p.Status.Conditions = []metav1.Condition{{Type: "ControlPlaneHealthy", Status: metav1.ConditionFalse, Message: fmt.Sprint(i)}}
		w.list.put(p)
	}
	g.Eventually(func() string {
		current, _ := fleet.ProfileFrom(cl)
		return current.Labels["beat"]
	}).WithTimeout(patience).Should(Equal("99"), "reconcilers see the current profile")
	g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(1))
	g.Expect(w.method.count()).To(Equal(resolved))
}

func TestAClusterOutlivesItsEndpoint(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c})
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl, err := w.Get(t.Context(), "fleet/eu")
	g.Expect(err).NotTo(HaveOccurred())
	configMaps := func() []string { return names(t, g, cl) }
	g.Expect(c.Create(configMap("before"))).To(Succeed())
	g.Eventually(configMaps).WithTimeout(patience).Should(ConsistOf("before"))
	lists, watches := c.Requests("list", "configmaps"), c.Requests("watch", "configmaps")

	old := c.Config().Host
	c.Move()
	g.Expect(c.Create(configMap("meanwhile"))).To(Succeed())
	w.method.add(c.Config())
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(configMaps).WithTimeout(patience).Should(ConsistOf("before", "meanwhile"))
	g.Expect(c.Create(configMap("after"))).To(Succeed())
	g.Eventually(configMaps).WithTimeout(patience).Should(ConsistOf("before", "meanwhile", "after"))

	g.Expect(c.Config().Host).NotTo(Equal(old))
	g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(1))
	g.Expect(c.Requests("list", "configmaps")).To(Equal(lists), "the cache went on from its resource version")
	g.Expect(c.Requests("watch", "configmaps")).To(BeNumerically(">", watches))
	g.Expect(cl.GetConfig().Host).To(Equal(c.Config().Host))
	g.Expect(w.status("fleet/eu").Server).To(Equal(c.Config().Host))
}

func TestAnotherClusterBehindTheSameProfileIsEngagedAnew(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	w := start(t, f.Clusters())
	g.Expect(f.Cluster(0).Create(configMap("only-in-the-old"))).To(Succeed())
	w.list.put(profile("eu", f.Cluster(0).Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	first := w.engagements.of("fleet/eu")[0]
	g.Eventually(func() []string { return names(t, g, first.cluster) }).WithTimeout(patience).Should(ConsistOf("only-in-the-old"))

	w.list.put(profile("eu", f.Cluster(1).Config().Host))
	g.Eventually(func() []engagement { return w.engagements.of("fleet/eu") }).WithTimeout(patience).Should(HaveLen(2))
	g.Expect(first.ctx.Err()).To(HaveOccurred(), "the old one stopped before the new one came")
	second := w.engagements.of("fleet/eu")[1]
	g.Expect(names(t, g, second.cluster)).To(BeEmpty())
	g.Eventually(f.Cluster(0).Connections).WithTimeout(patience).Should(BeZero())
}

func TestAClusterThatCannotBeReachedHoldsUpNobody(t *testing.T) {
	for _, fault := range []struct {
		name  string
		fault mctest.Fault
	}{
		{"it refuses connections", mctest.Refuse},
		{"it accepts and never answers", mctest.Hang},
		{"it resets connections", mctest.Reset},
		{"its network swallows everything", mctest.Freeze},
		{"it does not accept the credentials", mctest.Unauthorized},
		{"it is not available", mctest.Unavailable},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			f := mctest.NewFleet(t, 2)
			bad, good := f.Cluster(0), f.Cluster(1)
			bad.Fault(fault.fault)
			w := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.ConnectTimeout = 300 * time.Millisecond })
			w.list.put(profile("bad", bad.Config().Host), profile("good", good.Config().Host))

			g.Eventually(w.state("fleet/good")).WithTimeout(patience).Should(Equal(fleet.Ready))
			g.Eventually(func() string { return w.status("fleet/bad").LastError }).WithTimeout(patience).ShouldNot(BeEmpty())
			_, err := w.Get(t.Context(), "fleet/bad")
			g.Expect(err).To(And(MatchError(multicluster.ErrClusterNotFound), MatchError(multicluster.ErrClusterNotReady)))

			bad.Clear()
			g.Eventually(w.state("fleet/bad")).WithTimeout(patience).Should(Equal(fleet.Ready))
			g.Expect(w.status("fleet/bad").LastError).To(BeEmpty())
			g.Expect(w.engagements.of("fleet/good")).To(HaveLen(1))
		})
	}
}

func TestAChangeOfTheProfileEndsTheWaitForTheNextAttempt(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour })
	w.list.put(profile("eu", "https://127.0.0.1:1"))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Backoff))
	g.Expect(w.status("fleet/eu").LastError).To(ContainSubstring("no credentials"))

	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
}

func TestAChangeOfTheCredentialsAloneIsFollowed(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour })
	w.list.put(profile("good", c.Config().Host), profile("waits", "https://elsewhere"))
	g.Eventually(w.state("fleet/good")).WithTimeout(patience).Should(Equal(fleet.Ready))
	g.Eventually(w.state("fleet/waits")).WithTimeout(patience).Should(Equal(fleet.Backoff))

	c.AddToken("new", "somebody", "system:masters")
	w.method.lead(c.Config().Host, c.ConfigFor("new"))
	w.method.lead("https://elsewhere", c.Config())
	w.method.change()
	g.Eventually(w.state("fleet/waits")).WithTimeout(patience).Should(Equal(fleet.Ready), "the wait is over at once")
	cl, err := w.Get(t.Context(), "fleet/good")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() string { return cl.GetConfig().BearerToken }).WithTimeout(patience).Should(Equal("new"))
	g.Expect(w.engagements.of("fleet/good")).To(HaveLen(1))
}

func TestAChangeOfTheProfileEndsAnAttemptThatHangs(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	f.Cluster(0).Fault(mctest.Hang)
	w := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.ConnectTimeout = time.Hour, time.Hour })
	w.list.put(profile("eu", f.Cluster(0).Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Connecting))
	w.list.put(profile("eu", f.Cluster(1).Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))

	w.list.put(profile("eu", f.Cluster(0).Config().Host))
	g.Eventually(f.Cluster(0).Connections).WithTimeout(patience).Should(Equal(1))
	w.list.put(profile("eu", f.Cluster(1).Config().Host))
	g.Eventually(f.Cluster(0).Connections).WithTimeout(patience).Should(BeZero())
	g.Expect(w.state("fleet/eu")()).To(Equal(fleet.Ready))
	g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(1), "what could not be followed has changed nothing")
}

func TestAnAccessThatDoesNotWorkLeavesTheOneBeforeInPlace(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c})
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	cl, err := w.Get(t.Context(), "fleet/eu")
	g.Expect(err).NotTo(HaveOccurred())

	wrong := c.ConfigFor("no such token")
	wrong.Host += "/"
	w.method.add(wrong)
	w.list.put(profile("eu", wrong.Host))
	g.Eventually(func() string { return w.status("fleet/eu").LastError }).WithTimeout(patience).Should(ContainSubstring("rejected the credentials"))
	g.Expect(w.status("fleet/eu").State).To(Equal(fleet.Ready))
	g.Expect(cl.GetAPIReader().List(t.Context(), &corev1.NamespaceList{})).To(Succeed())

	mended := c.Config()
	mended.Host += "/"
	w.method.add(mended)
	g.Eventually(func() string { return w.status("fleet/eu").LastError }).WithTimeout(patience).Should(BeEmpty())
	g.Expect(cl.GetAPIReader().List(t.Context(), &corev1.NamespaceList{})).To(Succeed())
	g.Expect(w.engagements.of("fleet/eu")).To(HaveLen(1))
}

func TestAProfileThatGoesTakesItsClusterAlongEvenIfItComesBack(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c})
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))

	w.list.remove("eu")
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(func() []engagement { return w.engagements.of("fleet/eu") }).WithTimeout(patience).Should(HaveLen(2))
	g.Expect(w.engagements.of("fleet/eu")[0].ctx.Err()).To(HaveOccurred())
}

func TestTwoProfilesOfOneNameAreOneClusterAtATime(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	w := start(t, f.Clusters(), func(o *fleet.Options) {
		o.ClusterName = func(*inventory.Profile) multicluster.ClusterName { return "one" }
	})
	w.list.put(profile("a", f.Cluster(0).Config().Host), profile("b", f.Cluster(1).Config().Host))
	g.Eventually(w.state("one")).WithTimeout(patience).Should(Equal(fleet.Ready))
	g.Expect(w.status("one").Profile.Name).To(Equal("a"))

	w.list.remove("a")
	g.Eventually(func() string { return w.status("one").Profile.Name }).WithTimeout(patience).Should(Equal("b"))
	g.Eventually(w.state("one")).WithTimeout(patience).Should(Equal(fleet.Ready))
	g.Expect(w.engagements.of("one")).To(HaveLen(2))
}

func TestAProfileThatIsNotReadyIsNotConnected(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) {
		o.IsReady = func(p *inventory.Profile) bool { return p.Labels["ready"] == "yes" }
	})
	p := profile("eu", c.Config().Host)
	w.list.put(p)
	g.Expect(w.Status()).To(BeEmpty())

	ready := p.DeepCopy()
	ready.Labels = map[string]string{"ready": "yes"}
	w.list.put(ready)
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	w.list.put(p)
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(BeEmpty())
}

func TestAClusterThatNobodyTakesIsTriedAgain(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	w := start(t, []*mctest.Cluster{c})
	w.engagements.setFail(errors.New("not now"))
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(func() string { return w.status("fleet/eu").LastError }).WithTimeout(patience).Should(ContainSubstring("not now"))
	w.engagements.setFail(nil)
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	all := w.engagements.of("fleet/eu")
	for _, e := range all[:len(all)-1] {
		g.Expect(e.ctx.Err()).To(HaveOccurred())
	}
	g.Expect(all[len(all)-1].ctx.Err()).NotTo(HaveOccurred())
}

func TestAFleetIsStoppedInEveryState(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault mctest.Fault
		until fleet.State
	}{
		{"while it connects", mctest.Hang, fleet.Connecting},
		{"while it backs off", mctest.Refuse, fleet.Backoff},
		{"when it is ready", mctest.Slow(0), fleet.Ready},
		{"while a cache that an index needs syncs", mctest.Hang.On("configmaps"), fleet.Syncing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			c.Fault(tc.fault)
			w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.ConnectTimeout = time.Hour, time.Hour })
			g.Expect(w.IndexField(t.Context(), &corev1.ConfigMap{}, "data.key", func(client.Object) []string { return nil })).To(Succeed())
			w.list.put(profile("eu", c.Config().Host))
			g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(tc.until))
			w.stop()
			g.Expect(w.Status()).To(BeEmpty())
		})
	}
}

func TestAFleetIsStartedOnce(t *testing.T) {
	g := NewWithT(t)
	w := start(t, nil)
	w.list.put(profile("eu", "https://127.0.0.1:1")) // returns once the first runs
	g.Expect(w.Start(t.Context(), w.engagements)).To(MatchError(ContainSubstring("more than once")))
}

func TestOptionsThatMustBeGiven(t *testing.T) {
	g := NewWithT(t)
	_, err := fleet.New(fleet.Options{Credentials: newMethod()})
	g.Expect(err).To(MatchError(ContainSubstring("Options.Source")))
	_, err = fleet.New(fleet.Options{Source: newList()})
	g.Expect(err).To(MatchError(ContainSubstring("either Options.Credentials or Options.Connector")))
	_, err = fleet.New(fleet.Options{Source: newList(), Credentials: newMethod(), Connector: &given{}})
	g.Expect(err).To(MatchError(ContainSubstring("either Options.Credentials or Options.Connector")))
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: "default", Name: name}
}

// names returns the names of the ConfigMaps in the cluster's cache.
func names(t *testing.T, g *WithT, cl cluster.Cluster) []string {
	all := &corev1.ConfigMapList{}
	g.Expect(cl.GetClient().List(t.Context(), all, client.InNamespace("default"))).To(Succeed())
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names
}
