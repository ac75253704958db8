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

// connectorFunc is a Connector.
type connectorFunc func(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error)

func (f connectorFunc) Connect(ctx context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	return f(ctx, p)
}

// unhurried has nothing to do until its context ends.
type unhurried struct {
	*engagements
	name multicluster.ClusterName
}

func (u unhurried) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	_ = u.engagements.Engage(ctx, name, cl)
	if name == u.name {
		<-ctx.Done()
	}
	return nil
}

func TestAnEngagementThatDoesNotEndIsEndedWithTheAttempt(t *testing.T) {
	for _, end := range []struct {
		name string
		by   func(w *world, other string)
		want string
	}{
		{"by the time limit", func(*world, string) {}, "no result within 1s"},
		{"by another access", func(w *world, other string) { w.list.put(profile("bad", other)) }, ""},
	} {
		t.Run(end.name, func(t *testing.T) {
			g := NewWithT(t)
			f := mctest.NewFleet(t, 2)
			w := startWith(t, f.Clusters(), func(e *engagements) multicluster.Aware { return unhurried{e, "fleet/bad"} },
				func(o *fleet.Options) {
					o.Connection.StartupLimit, o.Connection.ConnectTimeout = 1, time.Second
					o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour
					if end.want == "" {
						o.Connection.ConnectTimeout = time.Hour
					}
				})
			w.list.put(profile("bad", f.Cluster(0).Config().Host))
			g.Eventually(func() []engagement { return w.engagements.of("fleet/bad") }).WithTimeout(patience).Should(HaveLen(1))
			w.list.put(profile("good", f.Cluster(1).Config().Host))
			end.by(w, "https://nowhere")
			g.Eventually(w.state("fleet/good")).WithTimeout(patience).Should(Equal(fleet.Ready), "its place is free")
			g.Eventually(w.state("fleet/bad")).WithTimeout(patience).Should(Equal(fleet.Backoff))
			g.Expect(w.status("fleet/bad").LastError).To(ContainSubstring(end.want))
			g.Expect(w.engagements.of("fleet/bad")[0].ctx.Err()).To(HaveOccurred())
		})
	}
}

func TestAnEngagementThatDoesNotKeepToItsContextHoldsNoPlace(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	letGo := make(chan struct{})
	w := startWith(t, f.Clusters(), func(e *engagements) multicluster.Aware { return unheeding{e, letGo} },
		func(o *fleet.Options) { o.Connection.StartupLimit, o.Connection.ConnectTimeout = 1, time.Second })
	release := sync.OnceFunc(func() { close(letGo) })
	defer release()
	bad := profile("bad", f.Cluster(0).Config().Host)
	w.list.put(bad)
	g.Eventually(func() []engagement { return w.engagements.of("fleet/bad") }).WithTimeout(patience).Should(HaveLen(1))
	w.list.put(profile("good", f.Cluster(1).Config().Host))
	g.Eventually(w.state("fleet/good")).WithTimeout(patience).Should(Equal(fleet.Ready))

	g.Expect(w.status("fleet/bad")).To(And(HaveField("State", fleet.Syncing), HaveField("Reason", fleet.Engaging)))
	w.list.remove("bad")
	w.list.put(bad)
	g.Eventually(func() fleet.Reason { return w.status("fleet/bad").Reason }).WithTimeout(patience).Should(Equal(fleet.DuplicateName))
	release()
	g.Eventually(w.state("fleet/bad")).WithTimeout(patience).Should(Equal(fleet.Ready), "there is one of a name at a time")
}

// unheeding engages one cluster for as long as it likes.
type unheeding struct {
	*engagements
	letGo chan struct{}
}

func (u unheeding) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	_ = u.engagements.Engage(ctx, name, cl)
	if name == "fleet/bad" {
		<-u.letGo
	}
	return nil
}

func TestAClusterThatCannotStartIsNotWaitedFor(t *testing.T) {
	for _, has := range []struct {
		name  string
		aware func(*engagements) multicluster.Aware
		start func(ctx context.Context, cl cluster.Cluster) error
	}{
		{
			"while its caches sync",
			func(e *engagements) multicluster.Aware { return e },
			func(context.Context, cluster.Cluster) error { return errors.New("cannot start") },
		},
		{
			"while it is engaged",
			func(e *engagements) multicluster.Aware { return unhurried{e, "fleet/eu"} },
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
			w := startWith(t, []*mctest.Cluster{c}, has.aware, newStartedBy(has.start),
				func(o *fleet.Options) {
					o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour, time.Hour
				})
			w.list.put(profile("eu", c.Config().Host))
			g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Backoff))
			g.Expect(w.status("fleet/eu").LastError).To(HavePrefix("the cluster's caches have stopped: cannot start"))
		})
	}
}

// neverSynced is an imaginary cluster whose caches do not sync.
type neverSynced struct{ imaginaryCluster }

func (neverSynced) GetCache() cache.Cache { return neverSyncedCache{} }

type neverSyncedCache struct{ cache.Cache }

func (neverSyncedCache) WaitForCacheSync(ctx context.Context) bool {
	<-ctx.Done()
	return false
}

func TestAnAttemptHasItsTimeLimitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		w := start(t, nil, func(o *fleet.Options) {
			o.Connection.ConnectTimeout, o.Connection.MinBackoff, o.Connection.MaxBackoff = 30*time.Second, 0, 0
		},
			withConnector(connectorFunc(func(context.Context, *inventory.Profile) (*fleet.Connection, error) {
				return &fleet.Connection{
					Cluster: neverSynced{},
					Probe: func(context.Context) (string, error) {
						time.Sleep(20 * time.Second)
						return "u", nil
					},
				}, nil
			})))
		began := time.Now()
		w.list.put(profile("eu", "x"))
		time.Sleep(30*time.Second - time.Nanosecond)
		synctest.Wait()
		g.Expect(w.state("fleet/eu")()).To(Equal(fleet.Syncing))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		g.Expect(w.status("fleet/eu")).To(And(HaveField("State", fleet.Backoff), HaveField("Since", began.Add(30*time.Second)),
			HaveField("LastError", ContainSubstring("no result within 30s"))))
		w.stop()
	})
}
