// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
)

// holders counts the clusters that hold a confirmed slot.
type holders struct {
	mu   sync.Mutex   // guards what follows
	uses map[int]int  // of the slot of each cluster
	gone map[int]bool // clusters whose slots have ended with their contexts
	most int          // clusters at once
}

func (h *holders) use(cluster int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone[cluster] {
		return
	}
	h.uses[cluster]++
	h.most = max(h.most, len(h.uses))
}

func (h *holders) unuse(cluster int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uses[cluster]--
	if h.uses[cluster] <= 0 {
		delete(h.uses, cluster)
	}
}

// leave is called before the context of the cluster ends.
func (h *holders) leave(cluster int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone[cluster] = true
	delete(h.uses, cluster)
}

// randomCluster connects once. Its sources start at once and later.
type randomCluster struct {
	id      int
	limiter *admission.Limiter
	holders *holders

	mu  sync.Mutex // guards rng
	rng *rand.Rand
}

func (c *randomCluster) oneIn(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n) == 0
}

// pause takes less than that time, often none.
func (c *randomCluster) pause(ctx context.Context, limit time.Duration) {
	if !c.oneIn(3) {
		c.mu.Lock()
		d := time.Duration(c.rng.Int64N(int64(limit)))
		c.mu.Unlock()
		sleep(ctx, d)
	}
}

// run returns an error if the cluster or a source has not been served, although
// the context has not ended.
func (c *randomCluster) run(ctx context.Context) error {
	slot, err := c.limiter.Acquire(ctx, admission.Priority(c.id%4), nil)
	if err != nil {
		return ctxErr(ctx, err)
	}
	defer slot.Release()
	c.pause(ctx, 2*time.Second)
	if c.oneIn(5) {
		return nil // it cannot be reached
	}
	if err := slot.Confirm(ctx); err != nil {
		return ctxErr(ctx, err)
	}
	c.holders.use(c.id)
	starts, engaging := admission.NewStarts(ctx, c.limiter, slot, 24*time.Hour, func(ctx context.Context) error {
		c.pause(ctx, 2*time.Second)
		return nil
	})
	defer starts.Close()
	errs := make(chan error)
	const sources = 3
	for range sources {
		share := starts.RequestStart()
		go func() {
			err := c.start(ctx, share)
			for range 2 {
				c.pause(ctx, time.Minute)
				if err == nil {
					err = c.start(ctx, starts.RequestStart())
				}
			}
			errs <- err
		}()
	}
	c.pause(ctx, time.Second)
	c.holders.unuse(c.id)
	engaging.Release()
	for range sources {
		if sourceErr := <-errs; sourceErr != nil {
			err = sourceErr
		}
	}
	return err
}

// start is what a source does with its share.
func (c *randomCluster) start(ctx context.Context, share *admission.Share) error {
	defer share.Release()
	if c.oneIn(10) {
		return nil
	}
	if err := share.Wait(ctx); err != nil {
		return ctxErr(ctx, err)
	}
	c.holders.use(c.id)
	c.pause(ctx, 5*time.Second)
	c.holders.unuse(c.id)
	return nil
}

// ctxErr returns the error unless it is due to the end of the context.
func ctxErr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func TestRandomClusters(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, size := range []int{1, 3, 16} {
		inBubble(t, size, func(t *testing.T, g *WithT, l *admission.Limiter) {
			h := &holders{uses: map[int]int{}, gone: map[int]bool{}}
			var running sync.WaitGroup
			for id := range 20 * size {
				c := &randomCluster{id: id, limiter: l, holders: h, rng: rand.New(rand.NewPCG(rng.Uint64(), 0))}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.oneIn(5) {
					time.AfterFunc(time.Duration(rng.Int64N(int64(time.Minute))), func() {
						h.leave(id)
						cancel()
					})
				}
				running.Go(func() {
					c.pause(ctx, 10*time.Second)
					if err := c.run(ctx); err != nil {
						t.Errorf("cluster %d: %v", id, err)
					}
				})
			}
			running.Wait()
			g.Expect(h.most).To(Equal(size), "clusters that hold confirmed slots, at most")
		})
	}
}
