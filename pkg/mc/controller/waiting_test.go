// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/cachereads"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// oldCacheError is a cachereads.Waiter.
type oldCacheError chan struct{}

func (oldCacheError) Error() string            { return "old" }
func (c oldCacheError) Fresh() <-chan struct{} { return c }

func TestRequestWaitsForFreshCache(t *testing.T) {
	for _, tc := range []struct {
		name string
		wrap func(error) error
	}{
		{"as it is", func(err error) error { return err }},
		{"wrapped", func(err error) error { return fmt.Errorf("deleting: %w", err) }},
		{"twice in a joined error", func(err error) error { return errors.Join(err, fmt.Errorf("b: %w", err)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				old, tries := make(oldCacheError), atomic.Int32{}
				c := newController(t, reconcilerFunc(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
					if tries.Add(1); tries.Load() <= 2 {
						return reconcile.Result{}, tc.wrap(old)
					}
					return reconcile.Result{}, nil
				}), mccontroller.Options{})
				g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
				start(t, c)
				g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
				time.Sleep(9 * time.Minute)
				g.Expect(tries.Load()).To(BeEquivalentTo(1), "there is no backoff")
				time.Sleep(2 * time.Minute)
				g.Expect(tries.Load()).To(BeEquivalentTo(2), "it is retried after 10 minutes")
				close(old)
				synctest.Wait()
				g.Expect(tries.Load()).To(BeEquivalentTo(3))
				time.Sleep(time.Hour)
				g.Expect(tries.Load()).To(BeEquivalentTo(3))
			})
		})
	}
}

func TestOtherErrorsKeepTheirBackoff(t *testing.T) {
	for _, tc := range []struct {
		name    string
		err     error
		retried bool
	}{
		{"joined with another error", errors.Join(make(oldCacheError), errors.New("other")), true},
		{"terminal", reconcile.TerminalError(make(oldCacheError)), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var tries atomic.Int32
				c := newController(t, reconcilerFunc(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
					tries.Add(1)
					return reconcile.Result{}, tc.err
				}), mccontroller.Options{})
				g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
				start(t, c)
				g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
				time.Sleep(time.Minute)
				g.Expect(tries.Load() > 1).To(Equal(tc.retried))
				time.Sleep(time.Hour)
				g.Expect(tries.Load() > 1).To(Equal(tc.retried))
			})
		})
	}
}

func TestWaitEndsWithCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		old, tries := make(oldCacheError), atomic.Int32{}
		c := newController(t, reconcilerFunc(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
			tries.Add(1)
			return reconcile.Result{}, old
		}), mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		g.Expect(c.MultiClusterWatch(newFakeSource("b"))).To(Succeed())
		start(t, c)
		ctx, leave := context.WithCancel(t.Context())
		g.Expect(c.Engage(ctx, "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		leave()
		synctest.Wait()
		close(old)
		time.Sleep(time.Hour)
		g.Expect(tries.Load()).To(BeEquivalentTo(2))
	})
}

// A goroutine that remains would fail the bubble.
func TestWaitEndsWithController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c := newController(t, reconcilerFunc(func(context.Context, mcreconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, make(oldCacheError)
		}), mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
	})
}

func TestReconcileRecordsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var recorders []*cachereads.Recorder
		c := newController(t, reconcilerFunc(func(ctx context.Context, _ mcreconcile.Request) (reconcile.Result, error) {
			recorders = append(recorders, cachereads.From(ctx))
			return reconcile.Result{}, nil
		}), mccontroller.Options{})
		g.Expect(c.MultiClusterWatch(newFakeSource("a"))).To(Succeed())
		g.Expect(c.MultiClusterWatch(newFakeSource("b"))).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		g.Expect(recorders).To(HaveLen(2))
		g.Expect(recorders[0]).NotTo(BeNil())
		g.Expect(recorders[0]).NotTo(BeIdenticalTo(recorders[1]))
	})
}
