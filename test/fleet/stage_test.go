// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// stage is a manager with a controller of ConfigMaps over a fleet.
type stage struct {
	*fleet.Fleet
	*roll
	t    *testing.T
	stop func() // ends the manager and waits for it

	mu      sync.Mutex // guards what follows
	seen    map[string]bool
	engaged map[multicluster.ClusterName]int
	beats   int
}

// quick makes what takes minutes take moments.
func quick(o *fleet.Options) {
	o.Connection.ConnectTimeout = time.Second
	o.Connection.MinBackoff, o.Connection.MaxBackoff = 10*time.Millisecond, 200*time.Millisecond
	o.Connection.Probe = fleet.ProbeOptions{Interval: 50 * time.Millisecond, Timeout: 500 * time.Millisecond}
}

// newStage starts a manager, which ends with the test. Nothing is on its roll,
// which is Source and Credentials unless the options say otherwise.
func newStage(t *testing.T, change ...func(*fleet.Options)) *stage {
	t.Helper()
	g := NewWithT(t)
	s := &stage{roll: newRoll(), t: t, seen: map[string]bool{}, engaged: map[multicluster.ClusterName]int{}}
	options := fleet.Options{Source: s.roll, Credentials: s.roll}
	quick(&options)
	for _, c := range change {
		c(&options)
	}
	var err error
	s.Fleet, err = fleet.New(options)
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := mcmanager.New(mctest.New(t).Config(), s.Fleet, mcmanager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mgr.Add(&witness{s})).To(Succeed())
	err = mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		WithOptions(mccontroller.Options{MaxConcurrentReconciles: 4, SkipNameValidation: ptr.To(true)}).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			cl, err := mgr.GetCluster(ctx, req.ClusterName)
			if err != nil {
				return ctrl.Result{}, err
			}
			if err := cl.GetClient().Get(ctx, req.NamespacedName, &corev1.ConfigMap{}); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen[req.ClusterName.String()+"/"+req.Name] = true
			return ctrl.Result{}, nil
		}))
	g.Expect(err).NotTo(HaveOccurred())

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// witness counts engagements.
type witness struct{ *stage }

func (w *witness) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (w *witness) Engage(_ context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engaged[name]++
	return nil
}

// engagements is how often the cluster has been engaged.
func (s *stage) engagements(c *mctest.Cluster) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engaged[multicluster.ClusterName(c.Name())]
}

// beat writes an object to each cluster and waits until all are reconciled.
func (s *stage) beat(clusters ...*mctest.Cluster) {
	s.t.Helper()
	s.await(s.write(clusters...), clusters...)
}

// write writes an object of the same name to each cluster.
func (s *stage) write(clusters ...*mctest.Cluster) (name string) {
	s.t.Helper()
	s.mu.Lock()
	s.beats++
	name = fmt.Sprintf("beat-%d", s.beats)
	s.mu.Unlock()
	for _, c := range clusters {
		if err := c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
			s.t.Errorf("cannot write to %s: %v", c.Name(), err)
		}
	}
	return name
}

// await waits until the object of that name is reconciled in all clusters.
func (s *stage) await(name string, clusters ...*mctest.Cluster) {
	s.t.Helper()
	for _, c := range clusters {
		NewWithT(s.t).Eventually(func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.seen[c.Name()+"/"+name]
		}).WithTimeout(patience).Should(BeTrue(), "%s of %s is reconciled; %v", name, c.Name(), s.status(c))
	}
}

func (s *stage) status(c *mctest.Cluster) fleet.ClusterStatus {
	for _, status := range s.Status() {
		if status.Name == multicluster.ClusterName(c.Name()) {
			return status
		}
	}
	return fleet.ClusterStatus{}
}

// awaitState waits until the cluster is said to be in the state, with an error
// that contains the text.
func (s *stage) awaitState(c *mctest.Cluster, state fleet.State, text string) {
	s.t.Helper()
	NewWithT(s.t).Eventually(func() fleet.ClusterStatus { return s.status(c) }).WithTimeout(patience).WithPolling(5 * time.Millisecond).Should(
		And(HaveField("State", state), HaveField("LastError", ContainSubstring(text))))
}

// awaitReady waits until the clusters are Ready, with no error.
func (s *stage) awaitReady(clusters ...*mctest.Cluster) {
	s.t.Helper()
	for _, c := range clusters {
		NewWithT(s.t).Eventually(func() fleet.ClusterStatus { return s.status(c) }).WithTimeout(patience).Should(
			And(HaveField("State", fleet.Ready), HaveField("LastError", BeEmpty())))
	}
}

// nothingIsLeft stops the manager and checks that the clusters see nothing of it
// any more. TestMain looks for goroutines.
func (s *stage) nothingIsLeft(clusters ...*mctest.Cluster) {
	s.t.Helper()
	s.stop()
	g := NewWithT(s.t)
	g.Expect(s.Status()).To(BeEmpty())
	for _, c := range clusters {
		g.Eventually(c.Connections).WithTimeout(patience).Should(BeZero(), c.Name())
		g.Eventually(func() int { return c.OpenWatches("") }).WithTimeout(patience).Should(BeZero(), c.Name())
	}
}
