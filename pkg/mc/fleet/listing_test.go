// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestListingsAreWaitedFor(t *testing.T) {
	open := func() chan struct{} { return make(chan struct{}) }
	for _, tc := range []struct {
		name string
		// do returns whether the wait for those after the first is over.
		do   func(l *listings, cancel func())
		over bool
	}{
		{"not over before there is one", func(*listings, func()) {}, false},
		{"not over while one is under way", func(l *listings, _ func()) {
			l.add(open())
		}, false},
		{"over when all have synced", func(l *listings, _ func()) {
			a, b := open(), open()
			l.add(a)
			l.add(b)
			synctest.Wait()
			close(b)
			synctest.Wait()
			close(a)
		}, true},
		{"not over while one that came meanwhile is under way", func(l *listings, _ func()) {
			a := open()
			l.add(a)
			synctest.Wait()
			l.add(open())
			close(a)
		}, false},
		{"over with the context", func(l *listings, cancel func()) {
			l.add(open())
			cancel()
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newListings()
				l.add(open()) // was there before
				ctx, cancel := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() {
					defer close(over)
					l.wait(ctx, 1)
				}()
				synctest.Wait()
				tc.do(l, cancel)
				synctest.Wait()
				select {
				case <-over:
					if !tc.over {
						t.Error("the wait is over")
					}
				default:
					if tc.over {
						t.Error("the wait is not over")
					}
				}
				cancel()
				<-over
			})
		})
	}
}
