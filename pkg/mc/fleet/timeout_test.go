// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// connectorFunc is a Connector that is a function.
type connectorFunc func(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error)

func (f connectorFunc) Connect(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	return f(ctx, p)
}

// blockingAware blocks Engage of one cluster until the context ends.
type blockingAware struct {
	*awareRecorder
	name multicluster.ClusterName
}

func (u blockingAware) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	_ = u.awareRecorder.Engage(ctx, name, cl)
	if name == u.name {
		<-ctx.Done()
	}
	return nil
}

func TestBlockedEngageEndsWithAttempt(t *testing.T) {
	for _, end := range []struct {
		name string
		by   func(env *testEnv, other string)
		want string
	}{
		{"timeout", func(*testEnv, string) {}, "no engaged cluster within 1s"},
		{"access change", func(env *testEnv, other string) { env.source.put(profile("bad", other)) }, ""},
	} {
		t.Run(end.name, func(t *testing.T) {
			g := NewWithT(t)
			f := mctest.NewFleet(t, 2)
			env := startWith(t, f.Clusters(), func(e *awareRecorder) multicluster.Aware { return blockingAware{e, "fleet/bad"} },
				func(o *fleet.Options) {
					o.Connection.StartupLimit, o.Connection.ConnectTimeout = 1, time.Second
					o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour
					if end.want == "" {
						o.Connection.ConnectTimeout = time.Hour
					}
				})
			env.source.put(profile("bad", f.Cluster(0).Config().Host))
			g.Eventually(func() []engagement { return env.aware.of("fleet/bad") }).Should(HaveLen(1))
			env.source.put(profile("good", f.Cluster(1).Config().Host))
			end.by(env, "https://nowhere")
			g.Eventually(env.state("fleet/good")).Should(Equal(fleet.Ready), "the slot is free")
			g.Eventually(env.state("fleet/bad")).Should(Equal(fleet.Backoff))
			g.Expect(env.status("fleet/bad").LastError).To(ContainSubstring(end.want))
			g.Expect(env.aware.of("fleet/bad")[0].ctx.Err()).To(HaveOccurred())
		})
	}
}

func TestStuckEngageHoldsNoSlot(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	unblock := make(chan struct{})
	env := startWith(t, f.Clusters(), func(e *awareRecorder) multicluster.Aware { return stuckAware{e, unblock} },
		func(o *fleet.Options) { o.Connection.StartupLimit, o.Connection.ConnectTimeout = 1, time.Second })
	release := sync.OnceFunc(func() { close(unblock) })
	defer release()
	bad := profile("bad", f.Cluster(0).Config().Host)
	env.source.put(bad)
	g.Eventually(func() []engagement { return env.aware.of("fleet/bad") }).Should(HaveLen(1))
	env.source.put(profile("good", f.Cluster(1).Config().Host))
	g.Eventually(env.state("fleet/good")).Should(Equal(fleet.Ready))

	g.Expect(env.status("fleet/bad")).To(And(HaveField("State", fleet.Syncing), HaveField("Reason", fleet.Engaging)))
	env.source.remove("bad")
	env.source.put(bad)
	g.Eventually(func() fleet.Reason { return env.status("fleet/bad").Reason }).Should(Equal(fleet.DuplicateName))
	release()
	g.Eventually(env.state("fleet/bad")).Should(Equal(fleet.Ready), "one cluster per name at a time")
}

// stuckAware blocks Engage of one cluster and ignores the context.
type stuckAware struct {
	*awareRecorder
	unblock chan struct{}
}

func (u stuckAware) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	_ = u.awareRecorder.Engage(ctx, name, cl)
	if name == "fleet/bad" {
		<-u.unblock
	}
	return nil
}

func TestClusterStartError(t *testing.T) {
	for _, has := range []struct {
		name  string
		aware func(*awareRecorder) multicluster.Aware
		start func(ctx context.Context, cl cluster.Cluster) error
	}{
		{
			"syncing caches",
			func(e *awareRecorder) multicluster.Aware { return e },
			func(context.Context, cluster.Cluster) error { return errors.New("cannot start") },
		},
		{
			"engaging",
			func(e *awareRecorder) multicluster.Aware { return blockingAware{e, "fleet/eu"} },
			func(ctx context.Context, cl cluster.Cluster) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				go func() {
					cl.GetCache().WaitForCacheSync(ctx)
					cancel()
				}()
				_ = cl.Start(ctx)
				return errors.New("cannot start")
			},
		},
	} {
		t.Run(has.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			env := startWith(t, []*mctest.Cluster{c}, has.aware, withClusterStart(has.start),
				func(o *fleet.Options) {
					o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour, time.Hour
				})
			env.source.put(profile("eu", c.Config().Host))
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Backoff))
			g.Expect(env.status("fleet/eu").LastError).To(HavePrefix("the cluster's caches have stopped: cannot start"))
		})
	}
}

// unsyncedCluster is a fake cluster whose caches do not sync.
type unsyncedCluster struct{ fakeCluster }

func (unsyncedCluster) GetCache() cache.Cache { return unsyncedCache{} }

type unsyncedCache struct{ cache.Cache }

func (unsyncedCache) WaitForCacheSync(ctx context.Context) bool {
	<-ctx.Done()
	return false
}

func TestConnectTimeoutIsPerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		env := start(t, nil, func(o *fleet.Options) {
			o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = 30*time.Second, 0, 0
		},
			withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
				return &fleet.Connection{
					Cluster: unsyncedCluster{},
					Probe: func(context.Context) (string, error) {
						time.Sleep(20 * time.Second)
						return "u", nil
					},
				}, nil
			})))
		began := time.Now()
		env.source.put(profile("eu", "x"))
		time.Sleep(30*time.Second - time.Nanosecond)
		synctest.Wait()
		g.Expect(env.state("fleet/eu")()).To(Equal(fleet.Syncing))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		g.Expect(env.status("fleet/eu")).To(And(HaveField("State", fleet.Backoff), HaveField("Since", began.Add(30*time.Second)),
			HaveField("LastError", ContainSubstring("no engaged cluster within 30s"))))
		env.stop()
	})
}
