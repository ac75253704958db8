// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/test/internal/inmemory"
)

// env is a manager with a controller of ConfigMaps over a fleet of in-process
// clusters, which are those of an inventory in memory.
type env struct {
	*inmemory.Inventory
	t        *testing.T
	fleet    *fleet.Fleet
	recorder *recorder
	stop     func()

	mu      sync.Mutex // guards objects
	objects int        // number of names used by create
}

// quick lets what takes minutes take moments.
func quick(o *fleet.Options) {
	o.Connection.ConnectTimeout = time.Second
	o.Connection.MinBackoff, o.Connection.MaxBackoff = 10*time.Millisecond, 200*time.Millisecond
	o.Connection.Probe = fleet.ProbeOptions{Interval: 50 * time.Millisecond, Timeout: 500 * time.Millisecond}
}

// newEnv starts a manager, which ends with the test. Its inventory is empty, and
// is both Source and Credentials unless the options differ.
func newEnv(t *testing.T, change ...func(*fleet.Options)) *env {
	t.Helper()
	g := NewWithT(t)
	e := &env{Inventory: inmemory.New(), t: t, recorder: newRecorder()}
	options := fleet.Options{Source: e.Inventory, Credentials: e.Inventory}
	quick(&options)
	for _, c := range change {
		c(&options)
	}
	var err error
	e.fleet, err = fleet.New(options)
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := mcmanager.New(mctest.New(t).Config(), e.fleet, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	e.recorder.watchConfigMaps(t, mgr)
	e.stop = mctest.StartManager(t, mgr)
	return e
}

func nameOf(c *mctest.Cluster) multicluster.ClusterName { return multicluster.ClusterName(c.Name()) }

func (e *env) engagements(c *mctest.Cluster) int { return e.recorder.engagements(nameOf(c)) }

// checkReconciles creates an object in each cluster and waits until all are
// reconciled.
func (e *env) checkReconciles(clusters ...*mctest.Cluster) {
	e.t.Helper()
	e.awaitReconciled(e.create(clusters...), clusters...)
}

// create creates an object of the same new name in each cluster.
func (e *env) create(clusters ...*mctest.Cluster) (name string) {
	e.t.Helper()
	e.mu.Lock()
	e.objects++
	name = fmt.Sprintf("object-%d", e.objects)
	e.mu.Unlock()
	for _, c := range clusters {
		if err := c.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
			e.t.Errorf("cannot create %s in %s: %v", name, c.Name(), err)
		}
	}
	return name
}

// awaitReconciled waits until the object of that name is reconciled in all
// clusters.
func (e *env) awaitReconciled(name string, clusters ...*mctest.Cluster) {
	e.t.Helper()
	for _, c := range clusters {
		NewWithT(e.t).Eventually(func() bool { return e.recorder.reconciled(nameOf(c), name) }).Should(
			BeTrue(), "%s of %s is reconciled; %v", name, c.Name(), e.status(c))
	}
}

func (e *env) status(c *mctest.Cluster) fleet.ClusterStatus {
	for _, status := range e.fleet.Status() {
		if status.Name == nameOf(c) {
			return status
		}
	}
	return fleet.ClusterStatus{}
}

// awaitState waits until the cluster's status shows a state, and an error that
// contains a text.
func (e *env) awaitState(c *mctest.Cluster, state fleet.State, text string) {
	e.t.Helper()
	NewWithT(e.t).Eventually(func() fleet.ClusterStatus { return e.status(c) }).WithPolling(5 * time.Millisecond).Should(
		And(HaveField("State", state), HaveField("LastError", ContainSubstring(text))))
}

// awaitReady waits until the clusters are Ready, without an error.
func (e *env) awaitReady(clusters ...*mctest.Cluster) {
	e.t.Helper()
	for _, c := range clusters {
		NewWithT(e.t).Eventually(func() fleet.ClusterStatus { return e.status(c) }).Should(
			And(HaveField("State", fleet.Ready), HaveField("LastError", BeEmpty())))
	}
}

// checkUndisturbed checks that the clusters have been engaged exactly once, and
// are Ready.
func (e *env) checkUndisturbed(clusters ...*mctest.Cluster) {
	e.t.Helper()
	for _, c := range clusters {
		NewWithT(e.t).Expect(e.engagements(c)).To(Equal(1), c.Name())
	}
	e.awaitReady(clusters...)
}

// stopAndCheck stops the manager, and checks that nothing of it is left in the
// clusters. TestMain looks for goroutines.
func (e *env) stopAndCheck(clusters ...*mctest.Cluster) {
	e.t.Helper()
	e.stop()
	g := NewWithT(e.t)
	g.Expect(e.fleet.Status()).To(BeEmpty())
	for _, c := range clusters {
		g.Eventually(c.Connections).Should(BeZero(), c.Name())
		g.Eventually(func() int { return c.OpenWatches("") }).Should(BeZero(), c.Name())
	}
}
