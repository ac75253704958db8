// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// errSourceEnded is the failure of a source that returns nil too early, which its
// contract does not allow.
var errSourceEnded = errors.New("the source returned before the end of its context")

// Restart returns a source that restarts src when it fails, with a backoff from
// 1 s to 1 min (with jitter) that is reset once src has synced. It logs each
// failure with the logger of the context.
//
// A new run sends all profiles again. Those that it has not sent when it syncs
// are removed then, not before. The sink is synced once, after the first complete
// listing.
func Restart(src Source) Source {
	return SourceFunc(func(ctx context.Context, sink Sink) error {
		s := &restartSink{sink: sink, lastRun: map[Key]int{}}
		backoff := newRestartBackoff()
		for {
			s.run++
			s.syncedInRun = false
			err := src.Run(ctx, s)
			if ctx.Err() != nil {
				return nil
			}
			if err == nil {
				err = errSourceEnded
			}
			if s.syncedInRun {
				backoff = newRestartBackoff()
			}
			delay := backoff.Step()
			log.FromContext(ctx).Error(err, "Inventory source failed, restarting it", "retryAfter", delay.Round(time.Millisecond).String())
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(delay):
			}
		}
	})
}

func newRestartBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: time.Minute}
}

// restartSink remembers in which run each profile was last put.
type restartSink struct {
	sink        Sink
	lastRun     map[Key]int
	run         int
	syncedInRun bool
	synced      bool
}

func (s *restartSink) Put(profile *Profile) {
	s.lastRun[KeyOf(profile)] = s.run
	s.sink.Put(profile)
}

func (s *restartSink) Remove(key Key) {
	delete(s.lastRun, key)
	s.sink.Remove(key)
}

func (s *restartSink) Synced() {
	for key, run := range s.lastRun {
		if run != s.run {
			s.Remove(key)
		}
	}
	s.syncedInRun = true
	if !s.synced {
		s.synced = true
		s.sink.Synced()
	}
}
