// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// fakeSource stands for the plugin: each run takes a while and gives a numbered
// token, or fails.
type fakeSource struct {
	takes  time.Duration
	life   time.Duration // 0: no expiry
	fixed  bool          // the same token each time
	failed error

	runs     atomic.Int32
	inFlight atomic.Int32
}

func (s *fakeSource) obtain(ctx context.Context) (*Credential, error) {
	number := s.runs.Add(1)
	if s.fixed {
		number = 1
	}
	if s.inFlight.Add(1) > 1 {
		panic("two runs at once")
	}
	defer s.inFlight.Add(-1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.failed != nil {
		return nil, s.failed
	}
	now := time.Now()
	c := &Credential{Authorization: fmt.Sprintf("Bearer t%d", number)}
	if s.life > 0 {
		c.Expiry = now.Add(s.life)
	}
	return c, nil
}

func newTestAuthenticator(s *fakeSource) *Authenticator {
	return &Authenticator{
		source: &Source{
			Obtain: s.obtain, RefreshInterval: 5 * time.Minute,
			Stopped: func(*Authenticator) {}, Log: logr.Discard(),
		},
		spawn:          func(f func()) bool { go f(); return true },
		newCertificate: func(time.Time) {},
	}
}

func (a *Authenticator) token(t *testing.T) string {
	t.Helper()
	c, err := a.credential(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Authorization
}

func TestRenewalAheadOfExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &fakeSource{takes: 10 * time.Second, life: 100 * time.Minute}
		a := newTestAuthenticator(s)
		start := time.Now()
		for time.Since(start) < 24*time.Hour {
			asked := time.Now()
			c, err := a.credential(t.Context(), nil)
			g.Expect(err).NotTo(HaveOccurred())
			if s.runs.Load() > 1 {
				g.Expect(time.Since(asked)).To(BeZero(), "no request but the first waits")
			}
			g.Expect(time.Now()).To(BeTemporally("<", c.Expiry))
			time.Sleep(time.Minute)
		}
		// Between 70 and 90 % of the lifetime, and a minute until it is noticed.
		g.Expect(int(s.runs.Load())).To(And(BeNumerically(">=", 24*60/92), BeNumerically("<=", 24*60/70+1)))
	})
}

func TestNoRunWithoutRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &fakeSource{takes: time.Second, life: time.Hour}
		a := newTestAuthenticator(s)
		g.Expect(a.token(t)).To(Equal("Bearer t1"))
		time.Sleep(24 * time.Hour)
		g.Expect(int(s.runs.Load())).To(Equal(1))
		g.Expect(a.token(t)).To(Equal("Bearer t2"), "what has expired is not sent")
	})
}

func TestTokenWithoutExpiryIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &fakeSource{takes: time.Second}
		a := newTestAuthenticator(s)
		g.Expect(a.token(t)).To(Equal("Bearer t1"))
		time.Sleep(4 * time.Minute)
		g.Expect(a.token(t)).To(Equal("Bearer t1"))
		g.Expect(int(s.runs.Load())).To(Equal(1))
		time.Sleep(2 * time.Minute)
		g.Expect(a.token(t)).To(Equal("Bearer t1"), "the old one serves while the plugin runs")
		time.Sleep(2 * time.Second)
		g.Expect(a.token(t)).To(Equal("Bearer t2"))
	})
}

func TestOldCredentialWhilePluginFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &fakeSource{life: time.Hour}
		a := newTestAuthenticator(s)
		g.Expect(a.token(t)).To(Equal("Bearer t1"))
		s.failed = errors.New("vault is sealed")
		expiry := time.Now().Add(time.Hour)
		time.Sleep(55 * time.Minute)
		for time.Now().Before(expiry) {
			g.Expect(a.token(t)).To(Equal("Bearer t1"))
			time.Sleep(time.Second)
		}
		// Five minutes at 1, 2, 4, … 60 s.
		g.Expect(int(s.runs.Load())).To(And(BeNumerically(">=", 8), BeNumerically("<=", 13)))

		_, err := a.credential(t.Context(), nil)
		g.Expect(err).To(MatchError("vault is sealed"), "what has expired is not sent")
		s.failed = nil
		time.Sleep(2 * time.Minute)
		g.Expect(a.token(t)).NotTo(BeEmpty(), "and it recovers")
	})
}

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &fakeSource{failed: errors.New("no")}
		a := newTestAuthenticator(s)
		var times []time.Time
		for start := time.Now(); time.Since(start) < 10*time.Minute; time.Sleep(100 * time.Millisecond) {
			before := s.runs.Load()
			_, err := a.credential(t.Context(), nil)
			g.Expect(err).To(MatchError("no"))
			if s.runs.Load() > before {
				times = append(times, time.Now())
			}
		}
		for i := 1; i < len(times); i++ {
			least := min(time.Second<<(i-1), time.Minute)
			g.Expect(times[i].Sub(times[i-1])).To(And(
				BeNumerically(">=", least), BeNumerically("<=", least*6/5+100*time.Millisecond)))
		}
		g.Expect(len(times)).To(BeNumerically(">", 12))
	})
}

func TestManyRequestsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &fakeSource{takes: 10 * time.Second, life: time.Hour}
		a := newTestAuthenticator(s)
		var group sync.WaitGroup
		for i := range 100 {
			group.Go(func() {
				ctx := t.Context()
				if i%2 == 0 { // these leave before the run is over
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Duration(i+1)*50*time.Millisecond)
					defer cancel()
				}
				c, err := a.credential(ctx, nil)
				if i%2 == 0 {
					g.Expect(err).To(MatchError(context.DeadlineExceeded))
					return
				}
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(c.Authorization).To(Equal("Bearer t1"))
			})
		}
		group.Wait()
		g.Expect(int(s.runs.Load())).To(Equal(1))
	})
}

func TestAbandonedRun(t *testing.T) {
	within := func(a *Authenticator, d time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		_, err := a.credential(ctx, nil)
		return err
	}
	t.Run("soon is no failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			s := &fakeSource{takes: 10 * time.Second, life: time.Hour}
			a := newTestAuthenticator(s)
			g.Expect(within(a, 500*time.Millisecond)).To(MatchError(context.DeadlineExceeded))
			g.Expect(a.token(t)).To(Equal("Bearer t2"))
		})
	})
	t.Run("after a second is a failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			s := &fakeSource{takes: time.Hour}
			a := newTestAuthenticator(s)
			g.Expect(within(a, 3*time.Second)).To(MatchError(context.DeadlineExceeded))
			synctest.Wait()
			for range 10 {
				g.Expect(within(a, 3*time.Second)).To(MatchError(errdefs.ErrTimeout))
			}
			g.Expect(int(s.runs.Load())).To(Equal(1))
		})
	})
	t.Run("by a switch is no failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			s := &fakeSource{takes: 10 * time.Second, life: time.Hour}
			a := newTestAuthenticator(s)
			closing := make(chan struct{})
			time.AfterFunc(5*time.Second, func() { close(closing) })
			_, err := a.credential(t.Context(), closing)
			g.Expect(err).To(MatchError(errEnded))
			g.Expect(a.token(t)).To(Equal("Bearer t2"), "there is no backoff")
		})
	})
	t.Run("is not joined while it ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			s := &fakeSource{life: time.Hour}
			a := newTestAuthenticator(s)
			dying := make(chan struct{})
			a.source.Obtain = func(ctx context.Context) (*Credential, error) {
				if s.runs.Load() == 0 {
					s.runs.Add(1)
					<-ctx.Done()
					<-dying
					return nil, ctx.Err()
				}
				return s.obtain(ctx)
			}
			g.Expect(within(a, 500*time.Millisecond)).To(MatchError(context.DeadlineExceeded))
			time.AfterFunc(100*time.Millisecond, func() { close(dying) })
			g.Expect(a.token(t)).To(Equal("Bearer t2"))
		})
	})
}

func TestForcedRunsHaveBackoff(t *testing.T) {
	for _, test := range []struct {
		name  string
		fixed bool
	}{
		{"with the same token each time", true},
		{"with a new token each time", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				s := &fakeSource{fixed: test.fixed, life: 100 * time.Hour}
				a, refusals := newTestAuthenticator(s), &backoff{}
				// A server that accepts nothing, asked ten times a second.
				for start := time.Now(); time.Since(start) < 10*time.Minute; time.Sleep(100 * time.Millisecond) {
					c, err := a.credential(t.Context(), nil)
					g.Expect(err).NotTo(HaveOccurred())
					if fresh := a.replace(t.Context(), nil, c, refusals); fresh != nil {
						g.Expect(fresh.equals(c)).To(BeFalse())
					}
				}
				g.Expect(int(s.runs.Load())).To(And(BeNumerically(">=", 12), BeNumerically("<=", 17)))

				// After a while without a 401, there is a run at once.
				time.Sleep(10 * time.Minute)
				before := s.runs.Load()
				c, err := a.credential(t.Context(), nil)
				g.Expect(err).NotTo(HaveOccurred())
				a.replace(t.Context(), nil, c, refusals)
				g.Expect(int(s.runs.Load())).To(BeEquivalentTo(before + 1))
			})
		})
	}
}

func TestRefusedCredentialAlreadyReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &fakeSource{takes: time.Second, life: time.Hour}
		a := newTestAuthenticator(s)
		c1, err := a.credential(t.Context(), nil)
		g.Expect(err).NotTo(HaveOccurred())
		c2 := a.replace(t.Context(), nil, c1, &backoff{})
		g.Expect(c2.Authorization).To(Equal("Bearer t2"))
		g.Expect(a.replace(t.Context(), nil, c1, &backoff{})).To(BeIdenticalTo(c2), "no run for what has been replaced")
		g.Expect(int(s.runs.Load())).To(Equal(2))
	})
}

func TestFailedForcedRunKeepsOldCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &fakeSource{life: time.Hour}
		a := newTestAuthenticator(s)
		c1, err := a.credential(t.Context(), nil)
		g.Expect(err).NotTo(HaveOccurred())
		s.failed = errors.New("no")
		g.Expect(a.replace(t.Context(), nil, c1, &backoff{})).To(BeNil())
		g.Expect(a.token(t)).To(Equal("Bearer t1"))
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s := &fakeSource{takes: time.Hour, life: time.Hour}
		a := newTestAuthenticator(s)
		time.AfterFunc(time.Minute, func() { a.stop(errdefs.ErrReleased) })
		_, err := a.credential(t.Context(), nil)
		g.Expect(err).To(MatchError(errdefs.ErrReleased))
		_, err = a.credential(t.Context(), nil)
		g.Expect(err).To(MatchError(errdefs.ErrReleased))
		g.Expect(int(s.runs.Load())).To(Equal(1))
	})
}

func TestRenewalTime(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	seen := map[time.Duration]bool{}
	for range 1000 {
		c := &Credential{Expiry: now.Add(100 * time.Minute)}
		c.schedule(now, 10*time.Minute)
		due := c.refreshAt.Sub(now)
		g.Expect(due).To(And(BeNumerically(">=", 70*time.Minute), BeNumerically("<=", 90*time.Minute)))
		seen[due.Truncate(time.Minute)] = true

		c = &Credential{}
		c.schedule(now, 10*time.Minute)
		g.Expect(c.refreshAt.Sub(now)).To(And(BeNumerically(">=", 9*time.Minute), BeNumerically("<=", 11*time.Minute)))
	}
	g.Expect(len(seen)).To(BeNumerically(">", 15), "a thousand credentials of one minute are not renewed in one minute")
}

func TestExpiryByWallClock(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	// The machine slept for longer than the credential was to last: its wall
	// clock went on, and refreshAt, by the monotonic one, is still to come.
	c := &Credential{Expiry: now.Round(0).Add(-time.Second)}
	c.refreshAt = now.Add(time.Hour)
	g.Expect(c.isFresh(now)).To(BeFalse())
	c.Expiry = now.Round(0).Add(time.Second)
	g.Expect(c.isFresh(now)).To(BeTrue())
}

func BenchmarkCredential(b *testing.B) {
	a := newTestAuthenticator(&fakeSource{life: time.Hour})
	ctx := context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := a.credential(ctx, nil); err != nil {
				b.Error(err)
			}
		}
	})
}
