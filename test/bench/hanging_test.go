// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// reader lists the ConfigMaps of each cluster that it is told of.
type reader struct {
	left    atomic.Int32
	ready   chan struct{} // closed when none is left
	reading sync.WaitGroup
}

func (r *reader) Engage(ctx context.Context, _ multicluster.ClusterName, cl cluster.Cluster) error {
	r.reading.Go(func() {
		if _, err := cl.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(true)); err == nil && r.left.Add(-1) == 0 {
			close(r.ready)
		}
	})
	return nil
}

// untilListed is how long a fleet takes until so many of its clusters have been
// listed.
func untilListed(b *testing.B, clusters []*mctest.Cluster, well int) time.Duration {
	b.Helper()
	source := newRoll()
	f, err := fleet.New(fleet.Options{Source: source, Credentials: source})
	if err != nil {
		b.Fatal(err)
	}
	r := &reader{ready: make(chan struct{})}
	r.left.Store(int32(well))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.Start(ctx, r); err != nil {
			b.Error(err)
		}
	})
	defer func() {
		cancel()
		running.Wait()
		r.reading.Wait()
	}()
	for _, c := range clusters {
		source.lead(c.Name(), c.Config())
	}
	began := time.Now()
	for _, c := range clusters {
		source.put(profileOf(c))
	}
	select {
	case <-r.ready:
	case <-time.After(2 * time.Minute):
		b.Fatalf("%d clusters have not been listed", r.left.Load())
	}
	return time.Since(began)
}

// BenchmarkAHundredOfTwoThousandHang compares how long 1,900 clusters take to be
// listed by themselves and beside 100 that accept requests and never answer. In
// turns, either is first. The ratio is the median's over the rounds.
func BenchmarkAHundredOfTwoThousandHang(b *testing.B) {
	const all, every, rounds = 2000, 20, 5
	servers := mctest.NewFleet(b, all)
	var well []*mctest.Cluster
	for i, c := range servers.Clusters() {
		if i%every == every-1 {
			c.Fault(mctest.Hang)
			continue
		}
		well = append(well, c)
	}
	for b.Loop() {
		var ratios []float64
		for round := range rounds {
			sides := [][]*mctest.Cluster{well, servers.Clusters()}
			var took [2]time.Duration
			for turn := range sides {
				side := (turn + round) % 2
				took[side] = untilListed(b, sides[side], len(well))
			}
			ratios = append(ratios, float64(took[1])/float64(took[0]))
			b.Logf("alone %v, beside those that hang %v: %.2f", took[0].Round(time.Millisecond), took[1].Round(time.Millisecond), ratios[round])
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[rounds/2], "ratio")
	}
}
