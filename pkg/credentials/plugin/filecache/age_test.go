// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package filecache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/filecache"
)

func TestMaxAge(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cache := &filecache.Cache{Dir: dir, MaxAge: 5 * time.Minute}
		var i issuer
		g.Expect(token(t, cache, "k", &i)).To(Equal("t1"))
		time.Sleep(5*time.Minute - time.Second)
		g.Expect(token(t, cache, "k", &i)).To(Equal("t1"))
		time.Sleep(time.Second)
		g.Expect(token(t, cache, "k", &i)).To(Equal("t2"))

		// Those without an expiry are stored, for callers with the same limit.
		static := func(context.Context) (*plugin.Credential, error) {
			i.issued++
			return &plugin.Credential{Token: "static"}, nil
		}
		for range 3 {
			_, err := cache.Get(t.Context(), "s", static)
			g.Expect(err).NotTo(HaveOccurred())
		}
		g.Expect(i.issued).To(Equal(3))
		_, err := (&filecache.Cache{Dir: dir}).Get(t.Context(), "s", static)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(i.issued).To(Equal(4))
	})
}

func TestKeep(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		failure, denied := errors.New("hub does not respond"), errors.New("denied")
		cache := &filecache.Cache{Dir: dir, MaxAge: 5 * time.Minute, Keep: func(err error) bool { return errors.Is(err, failure) }}
		var i issuer
		token(t, cache, "k", &i)
		time.Sleep(10 * time.Minute)

		attempts := 0
		get := func(result error) (*plugin.Credential, error) {
			return cache.Get(t.Context(), "k", func(context.Context) (*plugin.Credential, error) {
				attempts++
				return nil, result
			})
		}
		for range 5 {
			credential, err := get(failure)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credential.Token).To(Equal("t1"))
		}
		g.Expect(attempts).To(Equal(1), "one attempt within the interval")
		time.Sleep(31 * time.Second)
		_, err := get(denied)
		g.Expect(err).To(MatchError(denied), "not every error keeps it")
		_, err = get(failure)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(attempts).To(Equal(3))

		time.Sleep(49 * time.Minute) // less than 30 s are left
		_, err = get(failure)
		g.Expect(err).To(MatchError(failure), "the credential is about to expire")
		g.Expect(token(t, cache, "k", &i)).To(Equal("t2"))
		g.Expect(files(t, dir, "*.failed")).To(BeEmpty())
	})
}

func TestWaitersShareAFailure(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cache := &filecache.Cache{Dir: dir}
		var attempts atomic.Int32
		var done sync.WaitGroup
		for range 20 {
			done.Go(func() {
				_, err := cache.Get(t.Context(), "k", func(context.Context) (*plugin.Credential, error) {
					attempts.Add(1)
					time.Sleep(time.Second) // the others wait for the lock
					return nil, errors.New("no such account")
				})
				g.Expect(err).To(MatchError("no such account"))
			})
		}
		done.Wait()
		g.Expect(attempts.Load()).To(BeEquivalentTo(1))
		time.Sleep(time.Millisecond)
		var i issuer
		g.Expect(token(t, cache, "k", &i)).To(Equal("t1"), "the next one tries again")
	})
}

func TestCancelledCallerFailsAlone(t *testing.T) {
	g := NewWithT(t)
	cache := &filecache.Cache{Dir: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	busy := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		_, err := cache.Get(ctx, "k", func(ctx context.Context) (*plugin.Credential, error) {
			close(busy)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		g.Expect(err).To(MatchError(context.Canceled))
	})
	<-busy
	done.Go(func() {
		credential, err := cache.Get(t.Context(), "k", (&issuer{}).obtain)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(credential.Token).To(Equal("t1"))
	})
	cancel()
	done.Wait()
}
