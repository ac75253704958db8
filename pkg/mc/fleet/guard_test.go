// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/cachereads"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func withMaxCacheAge(o *fleet.Options) { o.Connection.MaxCacheAge = time.Second }

// beStale matches the error of a refused write.
func beStale() types.GomegaMatcher { return BeAssignableToTypeOf(&fleet.StaleCacheError{}) }

// stale returns the StaleCacheError of an error, or the error.
func stale(err error) error {
	for e := err; e != nil; {
		if found, ok := e.(*fleet.StaleCacheError); ok { //nolint:errorlint // it walks the chain
			return found
		}
		wrapper, ok := e.(interface{ Unwrap() error })
		if !ok {
			break
		}
		e = wrapper.Unwrap()
	}
	return err
}

// reconcileOf returns a context like that of a Reconcile.
func reconcileOf(t *testing.T) context.Context {
	t.Helper()
	return cachereads.With(t.Context())
}

// outage makes the cluster silent until its cache is too old.
func outage(g *WithT, c *mctest.Cluster, cl cluster.Cluster) (end func()) {
	end = c.Fault(mctest.Freeze)
	g.Eventually(func() time.Duration { return time.Since(inStep(g, cl)) }).Should(BeNumerically(">", time.Second))
	return end
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: configMap(name).ObjectMeta}
}

// The cluster whose cache is old hangs, so a write that is not refused times out.
func TestGuardedWrites(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	_, cl := engaged(t, g, c, withMaxCacheAge)
	read := reconcileOf(t)
	g.Expect(cl.GetClient().Get(read, key("x"), &corev1.ConfigMap{})).NotTo(Succeed())
	g.Expect(fleet.CheckCaches(read)).To(Succeed())
	outage(g, c, cl)
	g.Expect(stale(fleet.CheckCaches(read))).To(beStale())
	pod := &corev1.Pod{ObjectMeta: configMap("x").ObjectMeta}
	for _, tc := range []struct {
		name    string
		write   func(context.Context, client.Client) error
		refused bool
	}{
		{"create", func(ctx context.Context, c client.Client) error { return c.Create(ctx, configMap("x")) }, true},
		{"delete", func(ctx context.Context, c client.Client) error { return c.Delete(ctx, configMap("x")) }, true},
		{"delete all", func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"))
		}, true},
		{"evict", func(ctx context.Context, c client.Client) error {
			return c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{})
		}, true},
		{"update", func(ctx context.Context, c client.Client) error { return c.Update(ctx, configMap("x")) }, false},
		{"update status", func(ctx context.Context, c client.Client) error { return c.Status().Update(ctx, pod) }, false},
		{"patch", func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, configMap("x"), client.RawPatch("application/merge-patch+json", []byte("{}")))
		}, false},
		{"read", func(ctx context.Context, c client.Client) error {
			return client.IgnoreNotFound(c.Get(ctx, key("x"), &corev1.ConfigMap{}))
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithTimeout(read, 50*time.Millisecond)
			defer cancel()
			err := tc.write(ctx, cl.GetClient())
			if !tc.refused {
				g.Expect(stale(err)).NotTo(beStale())
				return
			}
			g.Expect(stale(err)).To(beStale())
			g.Expect(err).To(MatchError(And(ContainSubstring(`the cache of configmaps in cluster "fleet/eu"`), ContainSubstring("return this error from Reconcile"))))
		})
	}
}

func TestGuardCountsCacheReadsOnly(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	cached := func(o *fleet.Options) {
		o.Connection.ClusterOptions = append(o.Connection.ClusterOptions, func(o *cluster.Options) {
			o.Client.Cache = &client.CacheOptions{Unstructured: true}
		})
	}
	uncached := func(o *fleet.Options) {
		o.Connection.ClusterOptions = append(o.Connection.ClusterOptions, func(o *cluster.Options) {
			o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
		})
	}
	for _, tc := range []struct {
		name   string
		option func(*fleet.Options)
		read   func(context.Context, cluster.Cluster) error
		counts bool
	}{
		{"list of a Go type", nil, func(ctx context.Context, cl cluster.Cluster) error {
			return cl.GetClient().List(ctx, &corev1.ConfigMapList{})
		}, true},
		{"metadata", nil, func(ctx context.Context, cl cluster.Cluster) error {
			return cl.GetClient().Get(ctx, key("x"), metadata.DeepCopy())
		}, true},
		{"cache of the cluster", nil, func(ctx context.Context, cl cluster.Cluster) error {
			return cl.GetCache().List(ctx, &corev1.ConfigMapList{})
		}, true},
		{"unstructured", nil, func(ctx context.Context, cl cluster.Cluster) error {
			return cl.GetClient().Get(ctx, key("x"), object.DeepCopy())
		}, false},
		{"unstructured list, cached", cached, func(ctx context.Context, cl cluster.Cluster) error {
			return cl.GetClient().List(ctx, list.DeepCopy())
		}, true},
		{"kind that is not cached", uncached, func(ctx context.Context, cl cluster.Cluster) error {
			return cl.GetClient().List(ctx, &corev1.SecretList{})
		}, false},
		{"API reader", nil, func(ctx context.Context, cl cluster.Cluster) error {
			return cl.GetAPIReader().List(ctx, &corev1.ConfigMapList{})
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := mctest.New(t)
			change := []func(*fleet.Options){withMaxCacheAge}
			if tc.option != nil {
				change = append(change, tc.option)
			}
			_, cl := engaged(t, g, c, change...)
			g.Expect(c.Create(configMap("x"))).To(Succeed())
			g.Eventually(func() error { return tc.read(t.Context(), cl) }).Should(Succeed())
			ctx := reconcileOf(t)
			g.Expect(tc.read(ctx, cl)).To(Succeed())
			outage(g, c, cl)
			if tc.counts {
				g.Expect(stale(fleet.CheckCaches(ctx))).To(beStale())
			} else {
				g.Expect(fleet.CheckCaches(ctx)).To(Succeed())
			}
		})
	}
}

// What was read from an old cache stays old when the cache is fresh again.
func TestOldReadIsRefusedLater(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	_, cl := engaged(t, g, c, withMaxCacheAge)
	end := outage(g, c, cl)
	old, other := reconcileOf(t), reconcileOf(t)
	g.Expect(names(t, g, cl)).To(BeEmpty())
	g.Expect(cl.GetClient().List(old, &corev1.ConfigMapList{})).To(Succeed())
	end()
	g.Eventually(func() error {
		g.Expect(cl.GetClient().List(other, &corev1.ConfigMapList{})).To(Succeed())
		ctx := reconcileOf(t)
		g.Expect(cl.GetClient().List(ctx, &corev1.ConfigMapList{})).To(Succeed())
		return cl.GetClient().Create(ctx, configMap("after"))
	}).Should(Succeed())
	g.Expect(stale(cl.GetClient().Create(old, configMap("never")))).To(beStale())
}

func TestGuardOutsideOfReconcile(t *testing.T) {
	g := NewWithT(t)
	all := mctest.NewFleet(t, 2)
	env, cl := engaged(t, g, all.Cluster(0), withMaxCacheAge)
	env.credentials.add(all.Cluster(1).Config())
	env.source.put(profile("us", all.Cluster(1).Config().Host))
	g.Eventually(env.state("fleet/us")).Should(Equal(fleet.Ready))
	us, err := env.Get(t.Context(), "fleet/us")
	g.Expect(err).NotTo(HaveOccurred())
	outage(g, all.Cluster(0), cl)
	g.Expect(stale(cl.GetClient().Create(t.Context(), configMap("x")))).To(beStale(), "engaged has read ConfigMaps")
	g.Expect(us.GetClient().Create(t.Context(), configMap("x"))).To(Succeed(), "reads of other clusters are not known to belong to it")
	g.Expect(fleet.CheckCaches(t.Context())).To(MatchError(ContainSubstring("Reconcile")))
}

// A switch closes all watches for some milliseconds.
func TestSwitchesRefuseNothing(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env, cl := engaged(t, g, c, func(o *fleet.Options) { o.Connection.MaxCacheAge = 3 * time.Second })
	ctx, cancel := context.WithCancel(t.Context())
	var writes sync.WaitGroup
	var done atomic.Int32
	writes.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			one := cachereads.With(ctx)
			if err := cl.GetClient().List(one, &corev1.ConfigMapList{}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			if err := fleet.CheckCaches(one); err != nil {
				t.Error(err)
			}
			done.Add(1)
			<-ticker.C
		}
	})
	for range 5 {
		c.Move()
		env.credentials.add(c.Config())
		watches := c.Requests("watch", "configmaps")
		env.source.put(profile("eu", c.Config().Host))
		g.Eventually(func() int { return c.Requests("watch", "configmaps") }).WithPolling(time.Millisecond).Should(BeNumerically(">", watches))
		so := done.Load()
		g.Eventually(done.Load).Should(BeNumerically(">", so+200))
	}
	cancel()
	writes.Wait()
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
}

func TestGuardWithDegradedCluster(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env, cl := engaged(t, g, c, withMaxCacheAge)
	lift := c.Fault(mctest.Unavailable) // the watch stays open
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
	ctx := reconcileOf(t)
	g.Expect(cl.GetClient().List(ctx, &corev1.ConfigMapList{})).To(Succeed())
	g.Eventually(func() error { return stale(fleet.CheckCaches(ctx)) }).Should(beStale())
	refused := fleet.CheckCaches(ctx)
	lift()
	env.ready(g, false, true)
	var err *fleet.StaleCacheError
	g.Expect(errors.As(refused, &err)).To(BeTrue())
	g.Eventually(err.Fresh()).Should(BeClosed())
	g.Eventually(func() error { return fleet.CheckCaches(ctx) }).Should(Succeed())
}

func TestForbiddenKindRefusesNothing(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.Fault(mctest.Forbidden.On("secrets"))
	_, cl := engaged(t, g, c, withMaxCacheAge)
	_, err := cl.GetCache().GetInformer(t.Context(), &corev1.Secret{}, cache.BlockUntilSynced(false))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() []string { return behind(cl) }).Should(ConsistOf("secrets"))
	ctx := reconcileOf(t)
	g.Expect(cl.GetClient().List(ctx, &corev1.ConfigMapList{})).To(Succeed())
	g.Expect(cl.GetClient().Create(ctx, configMap("x"))).To(Succeed())
	f, known := fleet.FreshnessOf(cl, &corev1.Secret{})
	g.Expect(known).To(BeTrue())
	g.Expect(f.InStep).To(BeZero())
	g.Expect(f.WatchOpen).To(BeFalse())
	g.Expect(f.Err).To(MatchError(ContainSubstring("403")))
	_, known = fleet.FreshnessOf(cl, &corev1.Pod{})
	g.Expect(known).To(BeFalse(), "it was never read")
}

// Those who wait must not wait for a cluster that has gone, and nothing may remain.
func TestDisengagedClusterEndsWaits(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env, cl := engaged(t, g, c, withMaxCacheAge)
	ctx := reconcileOf(t)
	g.Expect(cl.GetClient().List(ctx, &corev1.ConfigMapList{})).To(Succeed())
	outage(g, c, cl)
	var refused *fleet.StaleCacheError
	g.Expect(errors.As(fleet.CheckCaches(ctx), &refused)).To(BeTrue())
	fresh := refused.Fresh()
	g.Expect(refused.Fresh()).To(BeIdenticalTo(fresh), "all wait for the same")
	g.Expect(fresh).NotTo(BeClosed())
	env.source.remove("eu")
	g.Eventually(fresh).Should(BeClosed())
	g.Eventually(env.state("fleet/eu")).Should(BeEmpty())
	g.Expect(errors.As(fleet.CheckCaches(ctx), &refused)).To(BeTrue())
	g.Expect(refused.Fresh()).To(BeNil())
	env.stop()
}

func TestManyReadersWithOneContext(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	g.Expect(c.Create(configMap("x"))).To(Succeed())
	_, cl := engaged(t, g, c, withMaxCacheAge)
	ctx := reconcileOf(t)
	var readers sync.WaitGroup
	for i := range 50 {
		readers.Go(func() {
			for j := range 20 {
				var err error
				if (i+j)%2 == 0 {
					err = cl.GetClient().List(ctx, &corev1.SecretList{})
				} else {
					err = cl.GetClient().Get(ctx, key("x"), &corev1.ConfigMap{})
				}
				if err != nil {
					t.Error(err)
				}
				if j%5 == 0 {
					if err := cl.GetClient().Create(ctx, configMap(fmt.Sprintf("c-%d-%d", i, j))); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	readers.Wait()
	outage(g, c, cl)
	g.Expect(stale(cl.GetClient().Create(ctx, configMap("never")))).To(beStale())
}

func TestGuardKeepsReadYourWrites(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env, cl := engaged(t, g, c, withMaxCacheAge, func(o *fleet.Options) {
		o.Connection.ClusterOptions = append(o.Connection.ClusterOptions, func(o *cluster.Options) {
			o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}
		})
	})
	g.Expect(env.indexConfigMaps(t)).To(Succeed())
	for i := range 20 {
		ctx := reconcileOf(t)
		one := configMap(fmt.Sprintf("c-%d", i))
		one.Data = map[string]string{"key": "x"}
		g.Expect(cl.GetClient().Create(ctx, one)).To(Succeed())
		g.Expect(cl.GetClient().Get(ctx, key(one.Name), &corev1.ConfigMap{})).To(Succeed())
		found := &corev1.ConfigMapList{}
		g.Expect(cl.GetClient().List(ctx, found, client.MatchingFields{"data.key": "x"})).To(Succeed())
		g.Expect(found.Items).To(HaveLen(i + 1))
		g.Expect(cl.GetClient().Create(ctx, secret(one.Name))).To(Succeed())
	}
}
