// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// engaged runs a fleet with one cluster, whose ConfigMaps are cached.
func engaged(t *testing.T, g *WithT, c *mctest.Cluster, change ...func(*fleet.Options)) (*testEnv, cluster.Cluster) {
	t.Helper()
	env := start(t, []*mctest.Cluster{c}, append(change, quickProbes)...)
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl, err := env.Get(t.Context(), "fleet/eu")
	g.Expect(err).NotTo(HaveOccurred())
	names(t, g, cl)
	return env, cl
}

// ready waits until the cluster is Ready, and asserts that its requests continue.
func (env *testEnv) ready(g *WithT, health ...bool) {
	g.Eventually(env.state("fleet/eu")).WithPolling(time.Millisecond).Should(Equal(fleet.Ready))
	g.Eventually(func() []bool { return env.aware.healthOf("fleet/eu") }).Should(Equal(health))
}

func behind(cl cluster.Cluster) []string {
	all, _ := fleet.Behind(cl)
	resources := []string{}
	for _, stale := range all {
		resources = append(resources, stale.Resource)
	}
	return resources
}

func TestReadyCachesAreInStep(t *testing.T) {
	for _, fault := range []struct {
		name  string
		fault mctest.Fault
	}{
		{"connection refused", mctest.Refuse},
		{"no response", mctest.Hang},
		{"503", mctest.Unavailable},
		{"401", mctest.Unauthorized},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := mctest.New(t)
			env, cl := engaged(t, g, c)
			lists := c.Requests("list", "configmaps")
			g.Expect(behind(cl)).To(BeEmpty())

			c.Fault(fault.fault)
			c.CloseConnections()
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
			g.Expect(behind(cl)).To(ConsistOf("configmaps"))
			g.Expect(c.Create(configMap("during"))).To(Succeed())
			c.Clear()
			g.Eventually(env.state("fleet/eu")).WithPolling(time.Millisecond).Should(Equal(fleet.Ready))
			g.Expect(names(t, g, cl)).To(ConsistOf("during"))
			g.Expect(behind(cl)).To(BeEmpty())
			g.Eventually(func() []bool { return env.aware.healthOf("fleet/eu") }).Should(Equal([]bool{false, true}))
			g.Expect(c.Requests("list", "configmaps")).To(Equal(lists))
		})
	}
}

func TestBehindWithOtherInformers(t *testing.T) {
	g := NewWithT(t)
	_, cl := engaged(t, g, mctest.New(t), func(o *fleet.Options) {
		o.Connection.ClusterOptions = append(o.Connection.ClusterOptions, func(o *cluster.Options) {
			o.Cache.NewInformer = toolscache.NewSharedIndexInformer
		})
	})
	_, known := fleet.Behind(cl)
	g.Expect(known).To(BeFalse())
	_, known = fleet.FreshnessOf(cl, &corev1.ConfigMap{})
	g.Expect(known).To(BeFalse())
}

func TestRecoveryWithForbiddenKind(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.Fault(mctest.Forbidden.On("secrets"))
	env, cl := engaged(t, g, c, func(o *fleet.Options) { o.Connection.ConnectTimeout = time.Hour })
	_, err := cl.GetCache().GetInformer(t.Context(), &corev1.Secret{}, cache.BlockUntilSynced(false))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() []string { return behind(cl) }).Should(ConsistOf("secrets"))

	lift := c.Fault(mctest.Refuse)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
	g.Expect(c.Create(configMap("during"))).To(Succeed())
	lift()
	env.ready(g, false, true)
	g.Expect(names(t, g, cl)).To(ConsistOf("during"))
	g.Expect(behind(cl)).To(ConsistOf("secrets"))
	g.Expect(env.status("fleet/eu").LastError).To(And(ContainSubstring("secrets"), ContainSubstring("403")))
}

func TestRecoveryWaitsForHangingKind(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env, cl := engaged(t, g, c, func(o *fleet.Options) { o.Connection.ConnectTimeout = 300 * time.Millisecond })
	lift := c.Fault(mctest.Refuse)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
	c.Fault(mctest.Hang.On("configmaps"))
	g.Expect(c.Create(configMap("during"))).To(Succeed())
	lift()
	g.Eventually(func() fleet.Reason { return env.status("fleet/eu").Reason }).Should(Equal(fleet.SyncingCaches))
	g.Expect(env.aware.healthOf("fleet/eu")).To(Equal([]bool{false}))
	env.ready(g, false, true)
	g.Eventually(func() []string { return behind(cl) }).Should(ConsistOf("configmaps"))
	g.Expect(env.status("fleet/eu").LastError).To(ContainSubstring("configmaps"))
	c.Clear()
	g.Eventually(func() []string { return names(t, g, cl) }).Should(ConsistOf("during"))
	g.Eventually(func() string { return env.status("fleet/eu").LastError }).Should(BeEmpty())
}

func TestSwitchDuringDegradation(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env, cl := engaged(t, g, c)
	lists := c.Requests("list", "configmaps")
	c.Fault(mctest.Refuse)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
	g.Expect(c.Create(configMap("during"))).To(Succeed())
	c.Move()
	c.Clear()
	env.credentials.add(c.Config())
	env.source.put(profile("eu", c.Config().Host))
	env.ready(g, false, true)
	g.Expect(names(t, g, cl)).To(ConsistOf("during"))
	g.Expect(c.Requests("list", "configmaps")).To(Equal(lists))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
}

func TestShutdownWhileRequestsWait(t *testing.T) {
	for _, recovers := range []bool{false, true} {
		g := NewWithT(t)
		c := mctest.New(t)
		env, cl := engaged(t, g, c)
		lift := c.Fault(mctest.Refuse)
		g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
		var reads sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		reads.Go(func() { _ = cl.GetCache().List(ctx, &corev1.SecretList{}) })
		if recovers {
			c.Fault(mctest.Hang.On("configmaps"))
			lift()
			g.Eventually(func() fleet.Reason { return env.status("fleet/eu").Reason }).Should(Equal(fleet.SyncingCaches))
		}
		env.stop()
		cancel()
		reads.Wait()
	}
}

func TestFirstReadWhileDegraded(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env, cl := engaged(t, g, c)
	g.Expect(c.Create(&corev1.Secret{ObjectMeta: configMap("s").ObjectMeta})).To(Succeed())
	g.Expect(cl.GetClient().List(t.Context(), &corev1.SecretList{})).To(Succeed()) // discovery
	c.Fault(mctest.Refuse)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := cl.GetCache().Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{})
	g.Expect(err).To(HaveOccurred())
	c.Clear()
	g.Eventually(func() error {
		return cl.GetCache().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{})
	}).Should(Succeed())
	env.ready(g, false, true)
}

// A watch that is cut before its first event must not cause a list.
func TestManySwitchesListNothing(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	var initial atomic.Int32 // lists, also over a watch
	env, cl := engaged(t, g, c, func(o *fleet.Options) {
		o.Connection.RESTOptions = append(o.Connection.RESTOptions, func(config *rest.Config) error {
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if query := r.URL.Query(); strings.HasSuffix(r.URL.Path, "/configmaps") && (query.Get("sendInitialEvents") != "" || query.Get("watch") == "") {
						initial.Add(1)
					}
					return next.RoundTrip(r)
				})
			})
			return nil
		})
	})
	g.Expect(initial.Load()).To(BeEquivalentTo(1))
	var watches int
	for range 3 {
		c.Move()
		env.credentials.add(c.Config())
		env.source.put(profile("eu", c.Config().Host))
		watches = c.Requests("watch", "configmaps")
		g.Eventually(func() int { return c.Requests("watch", "configmaps") }).WithPolling(time.Millisecond).Should(BeNumerically(">", watches))
	}
	g.Expect(c.Create(configMap("after"))).To(Succeed())
	g.Eventually(func() []string { return names(t, g, cl) }).Should(ConsistOf("after"))
	g.Consistently(initial.Load, "2s").Should(BeEquivalentTo(1))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
}

// deletions records the names of deleted objects.
type deletions struct {
	mu    sync.Mutex
	names []string
}

func (d *deletions) of() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.names...)
}

func watchDeletions(t *testing.T, g *WithT, cl cluster.Cluster) *deletions {
	t.Helper()
	d := &deletions{}
	informer, err := cl.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		key, _ := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.names = append(d.names, key)
	}})
	g.Expect(err).NotTo(HaveOccurred())
	return d
}

func TestRestoredCluster(t *testing.T) {
	for _, tc := range []struct {
		name    string
		faults  []mctest.Fault
		restore func(c *mctest.Cluster, env *testEnv, backup mctest.Snapshot)
	}{
		{"at the same address", nil, func(c *mctest.Cluster, _ *testEnv, backup mctest.Snapshot) { c.Restore(backup) }},
		{"while it is degraded", nil, func(c *mctest.Cluster, env *testEnv, backup mctest.Snapshot) {
			lift := c.Fault(mctest.Refuse)
			for env.state("fleet/eu")() != fleet.Degraded {
				time.Sleep(time.Millisecond)
			}
			c.Restore(backup)
			lift()
		}},
		{"at another address", nil, func(c *mctest.Cluster, env *testEnv, backup mctest.Snapshot) {
			c.Move()
			c.Restore(backup)
			env.credentials.add(c.Config())
			env.source.put(profile("eu", c.Config().Host))
		}},
		{"whose namespaces cannot be listed", []mctest.Fault{mctest.Forbidden.On("namespaces").For("list")},
			func(c *mctest.Cluster, _ *testEnv, backup mctest.Snapshot) { c.Restore(backup) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := mctest.New(t)
			for _, fault := range tc.faults {
				c.Fault(fault)
			}
			g.Expect(c.Create(configMap("kept"))).To(Succeed())
			env, cl := engaged(t, g, c)
			g.Expect(cl.GetCache().List(t.Context(), &corev1.SecretList{})).To(Succeed()) // another kind, without events
			deleted := watchDeletions(t, g, cl)
			backup := c.Snapshot()
			for range 3 {
				lost := configMap("lost")
				g.Expect(c.Create(lost)).To(Succeed())
				g.Eventually(func() []string { return names(t, g, cl) }).Should(ConsistOf("kept", "lost"))
				g.Expect(c.Delete(lost)).To(Succeed())
				g.Eventually(func() []string { return names(t, g, cl) }).Should(ConsistOf("kept"))
			}
			g.Expect(c.Create(configMap("phantom"))).To(Succeed())
			g.Eventually(func() []string { return names(t, g, cl) }).Should(ConsistOf("kept", "phantom"))

			tc.restore(c, env, backup)
			g.Expect(c.Create(configMap("new"))).To(Succeed())
			g.Eventually(func() []string { return names(t, g, cl) }).WithTimeout(20 * time.Second).Should(ConsistOf("kept", "new"))
			g.Eventually(deleted.of).Should(ContainElement("default/phantom"))
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
			g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1), "the cluster stays engaged")
			g.Expect(c.Create(configMap("newer"))).To(Succeed())
			g.Eventually(func() []string { return names(t, g, cl) }).Should(ConsistOf("kept", "new", "newer"))
		})
	}
}
