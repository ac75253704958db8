// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
)

func TestWholeLife(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		var down, rebuilt atomic.Bool
		down.Store(true)
		env.probe = func(context.Context, string) (string, error) {
			switch {
			case down.Load():
				return "", errDown
			case rebuilt.Load():
				return "rebuilt", nil
			}
			return "uid", nil
		}

		env.add(t, profile("a"))
		env.is(g, worker.Backoff, worker.Unreachable, "down")
		g.Expect(env.take()).To(Equal([]string{"Pending Added", "Connecting ResolvingAccess", "Backoff Unreachable"}))

		down.Store(false)
		pass(2 * time.Second)
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.take()).To(Equal([]string{"Connecting ResolvingAccess", "Syncing SyncingCaches", "Ready Engaged"}))
		g.Expect(env.Status()).To(And(HaveField("Server", "a"), HaveField("Provider", "fake"), HaveField("UID", "uid")))

		env.update(profile("b"))
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.Status()).To(HaveField("Server", "b"))
		g.Expect(env.take()).To(BeEmpty())
		g.Expect(env.engagements()).To(Equal(1))

		down.Store(true)
		pass(time.Minute)
		env.is(g, worker.Degraded, worker.Unreachable, "down")
		down.Store(false)
		pass(time.Minute)
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.take()).To(Equal([]string{"Degraded Unreachable", "Ready Engaged"}))

		rebuilt.Store(true)
		pass(time.Minute)
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.Status()).To(HaveField("UID", "rebuilt"))
		g.Expect(env.take()).To(Equal([]string{"Pending IdentityChanged", "Connecting ResolvingAccess", "Syncing SyncingCaches", "Ready Engaged"}))
		g.Expect(env.engagements()).To(Equal(2))

		down.Store(true)
		pass(dropAfter + time.Minute)
		g.Expect(env.take()[:2]).To(Equal([]string{"Degraded Unreachable", "Backoff HealthProbeFailed"}))
		down.Store(false)
		pass(maxBackoff)
		env.is(g, worker.Ready, worker.Engaged, "")
		env.take()

		env.stop()
		g.Expect(env.take()).To(Equal([]string{"Leaving Removed"}))
		g.Expect(env.Engaged()).To(BeNil())
	})
}

func TestStopLeavesNothing(t *testing.T) {
	for _, tc := range []struct {
		name   string
		setup  func(env *testEnv)
		after  time.Duration
		state  worker.State
		reason worker.Reason
	}{
		{"resolving", func(env *testEnv) {
			env.connect = func(ctx context.Context, _ *inventory.Profile) error { return hang(ctx) }
		}, 0, worker.Connecting, worker.ResolvingAccess},
		{"checking the identity", func(env *testEnv) {
			env.probe = func(ctx context.Context, _ string) (string, error) { return "", hang(ctx) }
		}, 0, worker.Connecting, worker.CheckingIdentity},
		{"syncing caches", func(env *testEnv) {
			env.sync = func(ctx context.Context) bool { return hang(ctx) == nil }
		}, 0, worker.Syncing, worker.SyncingCaches},
		{"engaging", func(env *testEnv) { env.engage = hang }, 0, worker.Syncing, worker.Engaging},
		{"ready", func(*testEnv) {}, 0, worker.Ready, worker.Engaged},
		{"degraded", func(env *testEnv) {
			env.probe = func(context.Context, string) (string, error) {
				if env.engagements() == 0 {
					return "uid", nil
				}
				return "", errDown
			}
		}, time.Minute, worker.Degraded, worker.Unreachable},
		{"in backoff after resolving failed", func(env *testEnv) {
			env.connect = func(context.Context, *inventory.Profile) error { return errDown }
		}, 0, worker.Backoff, worker.ResolveFailed},
		{"in backoff after setup failed", func(env *testEnv) { env.newCluster = errDown }, 0, worker.Backoff, worker.SetupFailed},
		{"in backoff after engaging failed", func(env *testEnv) {
			env.engage = func(context.Context) error { return errDown }
		}, 0, worker.Backoff, worker.EngageFailed},
		{"in backoff after the cluster stopped", func(env *testEnv) {
			env.start = func(context.Context) error { return errDown }
			env.sync = func(ctx context.Context) bool { return hang(ctx) == nil }
		}, 0, worker.Backoff, worker.CacheStopped},
		{"in backoff after a timeout", func(env *testEnv) {
			env.sync = func(ctx context.Context) bool { return hang(ctx) == nil }
		}, connectTimeout, worker.Backoff, worker.CacheSyncTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
				tc.setup(env)
				env.add(t, profile("a"))
				pass(tc.after)
				status := env.Status()
				g.Expect(status.State).To(Equal(tc.state))
				g.Expect(status.Reason).To(Equal(tc.reason))
				began := time.Now()
				env.stop() // inBubble checks what is left
				g.Expect(time.Since(began)).To(BeNumerically("<", time.Second))
				g.Expect(env.Engaged()).To(BeNil())
			})
		})
	}
	t.Run("waiting for a slot", func(t *testing.T) {
		inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
			for range 2 {
				slot, err := env.options.Limiter.Acquire(t.Context(), 0, nil)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(slot.Confirm(t.Context())).To(Succeed())
				defer slot.Release()
			}
			env.add(t, profile("a"))
			env.is(g, worker.Pending, worker.WaitingForStartupSlot, "")
			env.stop()
			g.Expect(env.connects()).To(BeZero())
		})
	})
	t.Run("with a reconnect under way", func(t *testing.T) {
		inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
			env.connect = func(ctx context.Context, p *inventory.Profile) error {
				if p.Status.AccessProviders[0].Cluster.Server == "b" {
					return hang(ctx)
				}
				return nil
			}
			env.add(t, profile("a"))
			env.update(profile("b"))
			env.is(g, worker.Ready, worker.Engaged, "")
		})
	})
}

func TestPreviousWorkerEndsFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		unblock := make(chan struct{})
		env.start = func(ctx context.Context) error {
			<-ctx.Done()
			<-unblock
			return nil
		}
		env.add(t, profile("a"))
		env.is(g, worker.Ready, worker.Engaged, "")
		env.Stop()
		env.add(t, profile("b"))
		env.is(g, worker.Pending, worker.DuplicateName, "")
		close(unblock)
		pass(time.Second)
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.Status().Server).To(Equal("b"))
	})
}

func TestFlappingProfileIsThrottled(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		const flips = 100
		for range flips {
			env.add(t, profile("a"))
			pass(50 * time.Millisecond)
			env.Stop()
			pass(50 * time.Millisecond)
		}
		g.Expect(env.engagements()).To(BeNumerically("~", 8, 1))
		env.take()

		env.add(t, profile("a"))
		env.is(g, worker.Backoff, worker.Added, "removed and added again too often")
		pass(20 * time.Second)
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.take()).To(Equal([]string{"Pending Added", "Backoff Added", "Connecting ResolvingAccess", "Syncing SyncingCaches", "Ready Engaged"}))
	})
}

func TestRemovedWhileThrottledIsNoChange(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		unblock := make(chan struct{})
		env.start = func(ctx context.Context) error {
			<-ctx.Done()
			<-unblock
			return nil
		}
		env.add(t, profile("a"))
		for range 100 { // none of them gets past the first worker
			env.Stop()
			env.add(t, profile("a"))
		}
		close(unblock)
		synctest.Wait()
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.engagements()).To(Equal(2))
	})
}

func TestRecheck(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		var fails atomic.Bool
		fails.Store(true)
		env.connect = func(context.Context, *inventory.Profile) error {
			if fails.Load() {
				return errors.New("no credentials")
			}
			return nil
		}
		env.add(t, profile("a"))
		env.is(g, worker.Backoff, worker.ResolveFailed, "no credentials")
		fails.Store(false)
		env.Recheck()
		synctest.Wait()
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.connects()).To(Equal(1))

		env.Recheck()
		synctest.Wait()
		g.Expect(env.connects()).To(Equal(2), "resolved again")
		env.is(g, worker.Ready, worker.Engaged, "")

		fails.Store(true)
		env.Recheck()
		synctest.Wait()
		env.is(g, worker.Ready, worker.AccessUpdateFailed, "no credentials")
		fails.Store(false)
		pass(2 * time.Second)
		env.is(g, worker.Ready, worker.Engaged, "")
		g.Expect(env.engagements()).To(Equal(1))
	})
}

func TestDeniedAccessIsDisengaged(t *testing.T) {
	denied := &credentials.Error{Provider: "vault", Err: fmt.Errorf("%w: namespace", credentials.ErrDenied)}
	for _, test := range []struct {
		name  string
		err   error
		state worker.State
	}{
		{"by a rule", denied, worker.Backoff},
		{"by the digest of a plugin", &credentials.Error{Err: &credentials.RunError{Err: credentials.ErrDenied}}, worker.Ready},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
				var err atomic.Pointer[error]
				env.connect = func(context.Context, *inventory.Profile) error {
					if current := err.Load(); current != nil {
						return *current
					}
					return nil
				}
				env.add(t, profile("a"))
				env.is(g, worker.Ready, worker.Engaged, "")

				err.Store(&test.err)
				env.Recheck()
				synctest.Wait()
				g.Expect(env.Status().State).To(Equal(test.state))
				g.Expect(env.Status().LastError).To(Equal(test.err.Error()))

				err.Store(nil)
				pass(time.Minute)
				env.is(g, worker.Ready, worker.Engaged, "")
			})
		})
	}
}
