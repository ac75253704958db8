// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sync/atomic"
	"time"
)

// backlogTime bounds the wait for a backlog that keeps arriving.
const backlogTime = 10 * time.Second

// activity notes when a cluster has sent data. Data after a gap of maxSettleTime may
// be the first of a backlog, so it counts when maxSettleTime is over and the cluster has
// been silent for settleTime, at the latest after backlogTime. The methods may be
// called concurrently.
type activity struct {
	start time.Time // what the times below count from, by the monotonic clock

	last    atomic.Int64 // when there was data
	resumed atomic.Int64 // when there was data after the last gap
	before  atomic.Int64 // the last data before it
	silent  atomic.Int64 // the last data that followed a silence, but no gap
}

func newActivity() *activity { return &activity{start: time.Now()} }

func (a *activity) note() {
	now, last := int64(time.Since(a.start)), a.last.Load()
	switch silence := time.Duration(now - last); {
	case silence > maxSettleTime:
		a.before.Store(last)
		a.resumed.Store(now)
	case silence >= settleTime:
		a.silent.Store(now)
	}
	a.last.Store(now) // after the others
}

// at returns when there was data, at first the start.
func (a *activity) at() time.Time { return a.start.Add(time.Duration(a.last.Load())) }

// settled returns when there was data that counts, and false if none does yet. The
// start counts like data.
func (a *activity) settled(now time.Time) (at time.Time, ok bool) {
	last, resumed := time.Duration(a.last.Load()), time.Duration(a.resumed.Load())
	since := now.Sub(a.start) - resumed
	silent := a.silent.Load() > int64(resumed) || now.Sub(a.start)-last >= settleTime
	if since >= backlogTime || silent && since >= maxSettleTime {
		return a.start.Add(last), true
	}
	return a.start.Add(time.Duration(a.before.Load())), resumed > 0
}
