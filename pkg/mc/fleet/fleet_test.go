// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

func TestEngageAndDisengage(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})

	get := func() error {
		_, err := env.Get(t.Context(), "fleet/eu")
		return err
	}
	g.Eventually(get).Should(And(MatchError(multicluster.ErrClusterNotFound), Not(MatchError(multicluster.ErrClusterNotReady))))

	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl, err := env.Get(t.Context(), "fleet/eu")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(env.ClusterNames()).To(ConsistOf(multicluster.ClusterName("fleet/eu")))
	g.Expect(env.status("fleet/eu").Server).To(Equal(c.Config().Host))
	engaged := env.aware.of("fleet/eu")
	g.Expect(engaged).To(HaveLen(1))
	g.Expect(engaged[0].cluster).To(BeIdenticalTo(cl))

	namespaces := &corev1.NamespaceList{}
	g.Expect(cl.GetClient().List(t.Context(), namespaces)).To(Succeed())
	g.Expect(namespaces.Items).NotTo(BeEmpty())
	g.Expect(c.OpenWatches("namespaces")).To(Equal(1))

	env.source.remove("eu")
	g.Eventually(engaged[0].ctx.Done()).Should(BeClosed())
	g.Eventually(env.state("fleet/eu")).Should(BeEmpty())
	_, err = env.Get(t.Context(), "fleet/eu")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
	g.Eventually(c.Connections).Should(BeZero())
	g.Expect(cl.GetAPIReader().List(t.Context(), namespaces)).To(MatchError(ContainSubstring("disengaged")))
}

func TestHeartbeatsKeepCluster(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	p := profile("eu", c.Config().Host)
	env.source.put(p)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	resolved, cl := env.credentials.count(), env.aware.of("fleet/eu")[0].cluster

	for i := range 100 {
		p = p.DeepCopy()
		p.Labels = map[string]string{"heartbeat": fmt.Sprint(i)}
		p.Status.Properties = []v1alpha1.Property{{Name: "heartbeat", Value: fmt.Sprint(i), LastObservedTime: metav1.Now()}}
		p.Status.Conditions = []metav1.Condition{{Type: "ControlPlaneHealthy", Status: metav1.ConditionFalse, Message: fmt.Sprint(i)}}
		env.source.put(p)
	}
	g.Eventually(func() string {
		current, _ := fleet.ProfileFrom(cl)
		return current.Labels["heartbeat"]
	}).Should(Equal("99"), "ProfileFrom returns the current profile")
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
	g.Expect(env.credentials.count()).To(Equal(resolved))
}

func TestEndpointChangeKeepsCluster(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl, err := env.Get(t.Context(), "fleet/eu")
	g.Expect(err).NotTo(HaveOccurred())
	configMaps := func() []string { return names(t, g, cl) }
	g.Expect(c.Create(configMap("before"))).To(Succeed())
	g.Eventually(configMaps).Should(ConsistOf("before"))
	lists, watches := c.Requests("list", "configmaps"), c.Requests("watch", "configmaps")

	old := c.Config().Host
	c.Move()
	g.Expect(c.Create(configMap("during"))).To(Succeed())
	env.credentials.add(c.Config())
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(configMaps).Should(ConsistOf("before", "during"))
	g.Expect(c.Create(configMap("after"))).To(Succeed())
	g.Eventually(configMaps).Should(ConsistOf("before", "during", "after"))

	g.Expect(c.Config().Host).NotTo(Equal(old))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
	g.Expect(c.Requests("list", "configmaps")).To(Equal(lists), "the cache went on from its resource version")
	g.Expect(c.Requests("watch", "configmaps")).To(BeNumerically(">", watches))
	g.Expect(cl.GetConfig().Host).To(Equal(c.Config().Host))
	g.Expect(env.status("fleet/eu").Server).To(Equal(c.Config().Host))
}

func TestOtherClusterIsReengaged(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	env := start(t, f.Clusters())
	g.Expect(f.Cluster(0).Create(configMap("only-in-old-cluster"))).To(Succeed())
	env.source.put(profile("eu", f.Cluster(0).Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	first := env.aware.of("fleet/eu")[0]
	g.Eventually(func() []string { return names(t, g, first.cluster) }).Should(ConsistOf("only-in-old-cluster"))

	env.source.put(profile("eu", f.Cluster(1).Config().Host))
	g.Eventually(func() []engagement { return env.aware.of("fleet/eu") }).Should(HaveLen(2))
	g.Expect(first.ctx.Err()).To(HaveOccurred(), "the old cluster is disengaged first")
	second := env.aware.of("fleet/eu")[1]
	g.Expect(names(t, g, second.cluster)).To(BeEmpty())
	g.Eventually(f.Cluster(0).Connections).Should(BeZero())
}

func TestUnreachableClusterDelaysNoOther(t *testing.T) {
	for _, fault := range []struct {
		name  string
		fault mctest.Fault
	}{
		{"connection refused", mctest.Refuse},
		{"no response", mctest.Hang},
		{"connection reset", mctest.Reset},
		{"packets are dropped", mctest.Freeze},
		{"401", mctest.Unauthorized},
		{"503", mctest.Unavailable},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			f := mctest.NewFleet(t, 2)
			bad, good := f.Cluster(0), f.Cluster(1)
			bad.Fault(fault.fault)
			env := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.ConnectTimeout = 300 * time.Millisecond })
			env.source.put(profile("bad", bad.Config().Host), profile("good", good.Config().Host))

			g.Eventually(env.state("fleet/good")).Should(Equal(fleet.Ready))
			g.Eventually(func() string { return env.status("fleet/bad").LastError }).ShouldNot(BeEmpty())
			_, err := env.Get(t.Context(), "fleet/bad")
			g.Expect(err).To(And(MatchError(multicluster.ErrClusterNotFound), MatchError(multicluster.ErrClusterNotReady)))

			bad.Clear()
			g.Eventually(env.state("fleet/bad")).Should(Equal(fleet.Ready))
			g.Expect(env.status("fleet/bad").LastError).To(BeEmpty())
			g.Expect(env.aware.of("fleet/good")).To(HaveLen(1))
		})
	}
}

func TestProfileChangeEndsBackoff(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour })
	env.source.put(profile("eu", "https://127.0.0.1:1"))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Backoff))
	g.Expect(env.status("fleet/eu").LastError).To(ContainSubstring("no credentials"))

	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
}

func TestCredentialChange(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) {
		o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour
		o.KeepDuplicates = true
	})
	env.source.put(profile("good", c.Config().Host), profile("waits", "https://elsewhere"))
	g.Eventually(env.state("fleet/good")).Should(Equal(fleet.Ready))
	g.Eventually(env.state("fleet/waits")).Should(Equal(fleet.Backoff))

	c.AddToken("new", "user", "system:masters")
	env.credentials.set(c.Config().Host, c.ConfigFor("new"))
	env.credentials.set("https://elsewhere", c.Config())
	env.credentials.change()
	g.Eventually(env.state("fleet/waits")).Should(Equal(fleet.Ready), "the backoff ends at once")
	cl, err := env.Get(t.Context(), "fleet/good")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() string { return cl.GetConfig().BearerToken }).Should(Equal("new"))
	g.Expect(env.aware.of("fleet/good")).To(HaveLen(1))
}

func TestProfileChangeEndsAttempt(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	f.Cluster(0).Fault(mctest.Hang)
	env := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.ConnectTimeout = time.Hour, time.Hour })
	env.source.put(profile("eu", f.Cluster(0).Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Connecting))
	env.source.put(profile("eu", f.Cluster(1).Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))

	env.source.put(profile("eu", f.Cluster(0).Config().Host))
	g.Eventually(f.Cluster(0).Connections).Should(Equal(1))
	env.source.put(profile("eu", f.Cluster(1).Config().Host))
	g.Eventually(f.Cluster(0).Connections).Should(BeZero())
	g.Expect(env.state("fleet/eu")()).To(Equal(fleet.Ready))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1), "the access that hangs has changed nothing")
}

func TestUnusableAccessKeepsConnection(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl, err := env.Get(t.Context(), "fleet/eu")
	g.Expect(err).NotTo(HaveOccurred())

	wrong := c.ConfigFor("no such token")
	wrong.Host += "/"
	env.credentials.add(wrong)
	env.source.put(profile("eu", wrong.Host))
	g.Eventually(func() string { return env.status("fleet/eu").LastError }).Should(ContainSubstring("rejected the credentials"))
	g.Expect(env.status("fleet/eu").State).To(Equal(fleet.Ready))
	g.Expect(cl.GetAPIReader().List(t.Context(), &corev1.NamespaceList{})).To(Succeed())

	repaired := c.Config()
	repaired.Host += "/"
	env.credentials.add(repaired)
	g.Eventually(func() string { return env.status("fleet/eu").LastError }).Should(BeEmpty())
	g.Expect(cl.GetAPIReader().List(t.Context(), &corev1.NamespaceList{})).To(Succeed())
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
}

func TestProfileRemovedAndAdded(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))

	env.source.remove("eu")
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(func() []engagement { return env.aware.of("fleet/eu") }).Should(HaveLen(2))
	g.Expect(env.aware.of("fleet/eu")[0].ctx.Err()).To(HaveOccurred())
}

func TestDuplicateName(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	env := start(t, f.Clusters(), func(o *fleet.Options) {
		o.ClusterName = func(*inventory.Profile) multicluster.ClusterName { return "one" }
	})
	env.source.put(profile("a", f.Cluster(0).Config().Host), profile("b", f.Cluster(1).Config().Host))
	g.Eventually(env.state("one")).Should(Equal(fleet.Ready))
	g.Expect(env.status("one").Profile.Name).To(Equal("a"))

	env.source.remove("a")
	g.Eventually(func() string { return env.status("one").Profile.Name }).Should(Equal("b"))
	g.Eventually(env.state("one")).Should(Equal(fleet.Ready))
	g.Expect(env.aware.of("one")).To(HaveLen(2))
}

func TestIsReady(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) {
		o.IsReady = func(p *inventory.Profile) bool { return p.Labels["ready"] == "yes" }
	})
	p := profile("eu", c.Config().Host)
	env.source.put(p)
	g.Expect(env.Status()).To(BeEmpty())

	ready := p.DeepCopy()
	ready.Labels = map[string]string{"ready": "yes"}
	env.source.put(ready)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	env.source.put(p)
	g.Eventually(env.state("fleet/eu")).Should(BeEmpty())
}

func TestEngageErrorIsRetried(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c})
	env.aware.setFail(errors.New("not now"))
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(func() string { return env.status("fleet/eu").LastError }).Should(ContainSubstring("not now"))
	env.aware.setFail(nil)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	all := env.aware.of("fleet/eu")
	for _, e := range all[:len(all)-1] {
		g.Expect(e.ctx.Err()).To(HaveOccurred())
	}
	g.Expect(all[len(all)-1].ctx.Err()).NotTo(HaveOccurred())
}

func TestStopInEachState(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault mctest.Fault
		until fleet.State
	}{
		{"connecting", mctest.Hang, fleet.Connecting},
		{"in backoff", mctest.Refuse, fleet.Backoff},
		{"ready", mctest.Slow(0), fleet.Ready},
		{"syncing a cache", mctest.Hang.On("configmaps"), fleet.Syncing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			c.Fault(tc.fault)
			env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) {
				o.Connection.MinBackoff, o.Connection.ConnectTimeout = time.Hour, time.Hour
				o.Connection.NewCluster = withConfigMaps
			})
			env.source.put(profile("eu", c.Config().Host))
			g.Eventually(env.state("fleet/eu")).Should(Equal(tc.until))
			env.stop()
			g.Expect(env.Status()).To(BeEmpty())
		})
	}
}

// withConfigMaps creates a cluster whose cache has ConfigMaps from the start.
func withConfigMaps(ctx context.Context, _ *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
	cl, err := cluster.New(config, opts...)
	if err == nil {
		_, err = cl.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	}
	return cl, err
}

func TestStartTwice(t *testing.T) {
	g := NewWithT(t)
	env := start(t, nil)
	env.source.put(profile("eu", "https://127.0.0.1:1")) // returns when the fleet runs
	g.Expect(env.Start(t.Context(), env.aware)).To(MatchError(ContainSubstring("more than once")))
}

func TestRequiredOptions(t *testing.T) {
	g := NewWithT(t)
	_, err := fleet.New(fleet.Options{Credentials: newFakeMethod()})
	g.Expect(err).To(MatchError(ContainSubstring("Options.Source")))
	_, err = fleet.New(fleet.Options{Source: newFakeSource()})
	g.Expect(err).To(MatchError(ContainSubstring("either Options.Credentials or Options.Connector")))
	_, err = fleet.New(fleet.Options{Source: newFakeSource(), Credentials: newFakeMethod(), Connector: &mctestConnector{}})
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
