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

// errSourceEnded stands for a source that returned nil although its context
// lives on, which its contract does not allow.
var errSourceEnded = errors.New("source ended although its context has not")

// Restart returns a source that runs src again whenever it fails, after a wait
// that grows from 1 s to 1 min (with jitter) and starts over once src has synced.
// Each failure is logged with the logger of the context.
//
// A run after a failure tells everything anew; what is missing from it when it
// says Synced has gone meanwhile and is removed then, not before. The sink
// hears Synced once, after the first complete listing.
func Restart(src Source) Source {
	return SourceFunc(func(ctx context.Context, sink Sink) error {
		// The sink outlives the runs, and with it what is known.
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
			log.FromContext(ctx).Error(err, "Inventory source failed, running it again", "after", delay.Round(time.Millisecond).String())
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

// restartSink remembers in which run each profile was last put. It is used
// from one goroutine at a time, as every sink is.
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
