// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// customStartCluster is a cluster with another Start.
type customStartCluster struct {
	cluster.Cluster
	start func(ctx context.Context, cl cluster.Cluster) error
}

func (s *customStartCluster) Start(ctx context.Context) error { return s.start(ctx, s.Cluster) }

// withClusterStart replaces the Start of all clusters.
func withClusterStart(start func(context.Context, cluster.Cluster) error) func(*fleet.Options) {
	return func(o *fleet.Options) {
		o.Connection.NewCluster = func(_ context.Context, _ *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
			cl, err := cluster.New(config, opts...)
			return &customStartCluster{cl, start}, err
		}
	}
}

func TestStoppingClusterIsNotReady(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	unblock := make(chan struct{})
	env := start(t, []*mctest.Cluster{c}, quickProbes, withClusterStart(func(ctx context.Context, cl cluster.Cluster) error {
		err := cl.Start(ctx)
		<-unblock
		return err
	}))
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))

	c.Rebuild()
	g.Eventually(func() error {
		_, err := env.Get(t.Context(), "fleet/eu")
		return err
	}).Should(MatchError(And(ContainSubstring("Pending"), ContainSubstring("cluster identity changed"))))
	g.Expect(env.Get(t.Context(), "fleet/eu")).Error().To(MatchError(multicluster.ErrClusterNotReady))
	close(unblock)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(env.status("fleet/eu").LastError).To(BeEmpty())
}

func TestStoppedCachesBackOff(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	ended := errors.New("stopped unexpectedly")
	starts := make(chan time.Time, 100)
	env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.MaxBackoff = time.Hour },
		withClusterStart(func(ctx context.Context, cl cluster.Cluster) error {
			starts <- time.Now()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				cl.GetCache().WaitForCacheSync(ctx)
				cancel()
			}()
			if err := cl.Start(ctx); err != nil {
				return err
			}
			return ended
		}))
	env.source.put(profile("eu", c.Config().Host))
	first := <-starts
	for range 5 {
		<-starts
	}
	const waits = (1 + 2 + 4 + 8 + 16) * 10 * time.Millisecond // at least
	g.Expect(time.Since(first)).To(BeNumerically(">=", waits))
	g.Eventually(func() string { return env.status("fleet/eu").LastError }).Should(
		HavePrefix("the cluster's caches have stopped: stopped unexpectedly"))
}

func TestServerIsShownWhileConnecting(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	env := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.ConnectTimeout = time.Hour })
	env.source.put(profile("eu", f.Cluster(0).Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(env.status("fleet/eu").UID).To(BeEquivalentTo(f.Cluster(0).UID()))

	env.source.remove("eu")
	f.Cluster(1).Fault(mctest.Hang)
	env.source.put(profile("eu", f.Cluster(1).Config().Host))
	g.Eventually(func() string { return env.status("fleet/eu").Server }).Should(Equal(f.Cluster(1).Config().Host))
	g.Expect(env.status("fleet/eu").State).To(Equal(fleet.Connecting))
	g.Expect(env.status("fleet/eu").UID).To(BeEmpty())
}
