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

// startedBy is a cluster that is started in another way.
type startedBy struct {
	cluster.Cluster
	start func(ctx context.Context, cl cluster.Cluster) error
}

func (s *startedBy) Start(ctx context.Context) error { return s.start(ctx, s.Cluster) }

// newStartedBy is the option that has all clusters started by the function.
func newStartedBy(start func(context.Context, cluster.Cluster) error) func(*fleet.Options) {
	return func(o *fleet.Options) {
		o.Connection.NewCluster = func(_ context.Context, _ *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
			cl, err := cluster.New(config, opts...)
			return &startedBy{cl, start}, err
		}
	}
}

func TestAClusterThatTakesTimeToEndIsNotReadyMeanwhile(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	letGo := make(chan struct{})
	w := start(t, []*mctest.Cluster{c}, quickProbes, newStartedBy(func(ctx context.Context, cl cluster.Cluster) error {
		err := cl.Start(ctx)
		<-letGo
		return err
	}))
	w.list.put(profile("eu", c.Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))

	c.Rebuild()
	g.Eventually(func() error {
		_, err := w.Get(t.Context(), "fleet/eu")
		return err
	}).WithTimeout(patience).Should(MatchError(And(ContainSubstring("Pending"), ContainSubstring("cluster identity changed"))))
	g.Expect(w.Get(t.Context(), "fleet/eu")).Error().To(MatchError(multicluster.ErrClusterNotReady))
	close(letGo)
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	g.Expect(w.status("fleet/eu").LastError).To(BeEmpty())
}

func TestAClusterThatEndsSoonAfterEachStartIsTriedLessAndLess(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	ended := errors.New("ended by itself")
	starts := make(chan time.Time, 100)
	w := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.MaxBackoff = time.Hour },
		newStartedBy(func(ctx context.Context, cl cluster.Cluster) error {
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
	w.list.put(profile("eu", c.Config().Host))
	first := <-starts
	for range 5 {
		<-starts
	}
	const waits = (1 + 2 + 4 + 8 + 16) * 10 * time.Millisecond // at least
	g.Expect(time.Since(first)).To(BeNumerically(">=", waits))
	g.Eventually(func() string { return w.status("fleet/eu").LastError }).WithTimeout(patience).Should(
		HavePrefix("the cluster's caches have stopped: ended by itself"))
}

func TestWhereAClusterIsSaidToBeIsKnownBeforeItAnswers(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	w := start(t, f.Clusters(), func(o *fleet.Options) { o.Connection.ConnectTimeout = time.Hour })
	w.list.put(profile("eu", f.Cluster(0).Config().Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	g.Expect(w.status("fleet/eu").UID).To(BeEquivalentTo(f.Cluster(0).UID()))

	w.list.remove("eu")
	f.Cluster(1).Fault(mctest.Hang)
	w.list.put(profile("eu", f.Cluster(1).Config().Host))
	g.Eventually(func() string { return w.status("fleet/eu").Server }).WithTimeout(patience).Should(Equal(f.Cluster(1).Config().Host))
	g.Expect(w.status("fleet/eu").State).To(Equal(fleet.Connecting))
	g.Expect(w.status("fleet/eu").UID).To(BeEmpty())
}
