// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
)

// The defaults of a fleet.
const (
	size           = 32
	connectTimeout = 30 * time.Second
)

type kind int

const (
	healthy     kind = iota
	hanging          // accepts requests and never responds
	missingKind      // does not serve what its source lists
)

// workload is a fleet in virtual time, whose clusters all start up at once.
type workload struct {
	response time.Duration // of each request but lists
	list     time.Duration
	limiter  *admission.Limiter
	listed   sync.WaitGroup // of the healthy clusters
}

// untilListed returns how long it takes until all healthy clusters are listed.
func (w *workload) untilListed(t *testing.T, clusters []kind) (took time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w.limiter = admission.NewLimiter(size, clock.RealClock{})
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, c := range clusters {
			if c == healthy {
				w.listed.Add(1)
			}
			running.Go(func() { w.run(ctx, c) })
			synctest.Wait() // they come in this order
		}
		w.listed.Wait()
		took = time.Since(began)
		cancel()
		running.Wait()
		if free := free(w.limiter, size); free != size {
			t.Errorf("%d slots are free at the end, want %d", free, size)
		}
	})
	return took
}

// run is what the worker of a cluster does.
func (w *workload) run(ctx context.Context, c kind) {
	priority := admission.New
	for backoff := time.Second; ctx.Err() == nil; backoff = min(2*backoff, time.Minute) {
		if w.connect(ctx, c, priority) == nil {
			return
		}
		priority = admission.Failed
		sleep(ctx, backoff)
	}
}

// connect connects the cluster and engages it until the context ends.
func (w *workload) connect(ctx context.Context, c kind, priority admission.Priority) error {
	slot, err := w.limiter.Acquire(ctx, priority, nil)
	if err != nil {
		return err
	}
	if err := w.probe(ctx, c); err != nil {
		slot.Release()
		return err
	}
	if err := slot.Confirm(ctx); err != nil {
		return err
	}
	starts, engaging := admission.NewStarts(ctx, w.limiter, slot, connectTimeout, func(ctx context.Context) error { return w.probe(ctx, c) })
	defer starts.Close()
	share := starts.RequestStart()
	engaging.Release()
	for ctx.Err() == nil && w.start(ctx, c, share) != nil {
		share.Release()
		sleep(ctx, time.Second)
		share = starts.RequestStart()
	}
	share.Release()
	return nil
}

// start is what a source does in the cluster.
func (w *workload) start(ctx context.Context, c kind, share *admission.Share) error {
	if err := share.Wait(ctx); err != nil {
		return err
	}
	if c == missingKind {
		return errors.New("no matches for kind")
	}
	sleep(ctx, w.list)
	if ctx.Err() == nil {
		w.listed.Done()
	}
	return nil
}

func (w *workload) probe(ctx context.Context, c kind) error {
	if c != hanging {
		sleep(ctx, w.response)
		return ctx.Err()
	}
	sleep(ctx, connectTimeout)
	return errors.New("no response")
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// delay returns the time until all healthy clusters are listed, compared to what
// they take without the others.
func (w *workload) delay(t *testing.T, clusters []kind) float64 {
	t.Helper()
	var alone []kind
	for _, c := range clusters {
		if c == healthy {
			alone = append(alone, c)
		}
	}
	without, with := w.untilListed(t, alone), w.untilListed(t, clusters)
	ratio := float64(with) / float64(without)
	t.Logf("alone %v, with the others %v: %.2f", without, with, ratio)
	return ratio
}

func TestHangingClustersDelayFew(t *testing.T) {
	clusters := make([]kind, 2000)
	for i := range clusters {
		if i%20 == 19 {
			clusters[i] = hanging
		}
	}
	for _, w := range []*workload{
		{response: 5 * time.Millisecond, list: 5 * time.Millisecond},
		{response: 5 * time.Millisecond, list: 200 * time.Millisecond},
		{response: 100 * time.Millisecond, list: 100 * time.Millisecond},
		{response: 400 * time.Millisecond, list: 10 * time.Millisecond},
		{response: 300 * time.Millisecond, list: 2 * time.Second},
		{response: 900 * time.Millisecond, list: 900 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("response %v, list %v", w.response, w.list), func(t *testing.T) {
			if ratio := w.delay(t, clusters); ratio >= 1.2 {
				t.Errorf("100 clusters that hang take %.0f %% of the time of 1,900 others, want less than 20 %%", (ratio-1)*100)
			}
		})
	}
}

func TestMissingKindsDelayFew(t *testing.T) {
	clusters := make([]kind, 104)
	for i := range 96 {
		clusters[i] = missingKind // before all that are healthy
	}
	for _, w := range []*workload{
		{response: 5 * time.Millisecond, list: 200 * time.Millisecond},
		{response: 5 * time.Millisecond, list: time.Second},
		{response: 50 * time.Millisecond, list: 2 * time.Second},
		{response: 50 * time.Millisecond, list: 20 * time.Second},
	} {
		t.Run(fmt.Sprintf("response %v, list %v", w.response, w.list), func(t *testing.T) {
			if ratio := w.delay(t, clusters); ratio > 1.1 {
				t.Errorf("96 clusters without the kind delay 8 others by the factor %.2f, want 1.1 at most", ratio)
			}
		})
	}
}
