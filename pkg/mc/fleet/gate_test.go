// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// slowReader is told of clusters and takes its time to read them.
type slowReader struct {
	*engagements
	read chan struct{} // a token for each cluster that may be done
}

func (r *slowReader) WaitForClusterSync(ctx context.Context, _ multicluster.ClusterName, _ cluster.Cluster) {
	select {
	case <-r.read:
	case <-ctx.Done():
	}
}

func TestClustersAreConnectedAndListedAFewAtATime(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 10)
	reader := &slowReader{read: make(chan struct{})}
	w := startWith(t, f.Clusters(), func(e *engagements) multicluster.Aware {
		reader.engagements = e
		return reader
	}, func(o *fleet.Options) { o.StartupLimit = 3 })
	for i, c := range f.Clusters() {
		w.list.put(profile(fmt.Sprintf("c%d", i), c.Config().Host))
	}
	ready := func() int { return len(w.ClusterNames()) }
	g.Eventually(ready).WithTimeout(patience).Should(Equal(3))
	g.Consistently(ready, "100ms").Should(Equal(3))
	for done := range 7 {
		reader.read <- struct{}{}
		g.Eventually(ready).WithTimeout(patience).Should(Equal(4 + done))
	}
}

func TestAPlaceIsForClustersThatAnswer(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 4)
	w := start(t, f.Clusters(), func(o *fleet.Options) { o.StartupLimit, o.ConnectTimeout = 1, time.Hour })
	for _, c := range f.Clusters()[:3] {
		c.Fault(mctest.Hang)
		w.list.put(profile(c.Name(), c.Config().Host))
	}
	for _, c := range f.Clusters()[:3] {
		g.Eventually(w.state(name(c))).WithTimeout(patience).Should(Equal(fleet.Connecting), "each gives its place up to the next")
	}
	good := f.Cluster(3)
	w.list.put(profile(good.Name(), good.Config().Host))
	g.Eventually(w.state(name(good))).WithTimeout(patience).Should(Equal(fleet.Ready))

	for _, c := range f.Clusters()[:3] {
		c.Clear()
		g.Eventually(w.state(name(c))).WithTimeout(patience).Should(Equal(fleet.Ready), "it has waited outside, and comes in again")
	}
}

func TestClustersThatCannotBeReachedKeepNoPlace(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 5)
	w := start(t, f.Clusters(), func(o *fleet.Options) { o.StartupLimit = 1 })
	for _, c := range f.Clusters()[:4] {
		c.Fault(mctest.Refuse)
	}
	for _, c := range f.Clusters() {
		w.list.put(profile(c.Name(), c.Config().Host))
	}
	g.Eventually(w.state(name(f.Cluster(4)))).WithTimeout(patience).Should(Equal(fleet.Ready))
}

func name(c *mctest.Cluster) multicluster.ClusterName {
	return multicluster.ClusterName("fleet/" + c.Name())
}
