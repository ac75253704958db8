// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// attempt is one attempt to reach the cluster of a profile.
type attempt struct {
	context.Context
	profile *inventory.Profile
	cancel  context.CancelCauseFunc
	ask     bool // who is there, also if the way is known

	clock    clock.PassiveClock
	timer    clock.Timer
	deadline time.Time
}

// errSuperseded ends an attempt whose profile has changed meanwhile.
var errSuperseded = errors.New("the way to the cluster has changed meanwhile")

// try begins an attempt on the latest profile. It must be ended.
func (k *keeper) try() *attempt {
	limit := k.fleet.options.Connection.ConnectTimeout
	a := &attempt{profile: k.latest.Load(), clock: k.fleet.options.Connection.Clock, deadline: k.fleet.options.Connection.Clock.Now().Add(limit)}
	a.Context, a.cancel = context.WithCancelCause(k.ctx)
	a.timer = afterFunc(k.fleet.options.Connection.Clock, limit, func() { a.cancel(&timeoutError{"result", limit}) })
	k.trying.Store(a)
	k.supersede(k.latest.Load()) // it may have changed before anybody could know of the attempt
	return a
}

// untimed runs the function, which is not bound by the attempt's time limit.
func (a *attempt) untimed(f func() error) error {
	if a.timer.Stop() {
		left := a.deadline.Sub(a.clock.Now())
		defer func() {
			a.deadline = a.clock.Now().Add(left)
			a.timer.Reset(left)
		}()
	}
	return f()
}

func (k *keeper) end(a *attempt) {
	k.trying.CompareAndSwap(a, nil)
	a.timer.Stop()
	a.cancel(nil)
}

// supersede ends the current attempt if the profile leads another way.
func (k *keeper) supersede(profile *inventory.Profile) {
	if a := k.trying.Load(); a != nil && inventory.Fingerprint(a.profile) != inventory.Fingerprint(profile) {
		a.cancel(errSuperseded)
	}
}
