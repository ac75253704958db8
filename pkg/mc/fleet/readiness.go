// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// ReadyCheck returns a check for the manager's readiness probe: it passes once
// the inventory has been read and at least the share of the clusters on the
// roll, from 0 to 1, is Ready. An empty roll passes. Clusters that are leaving
// do not count.
//
// A fleet that has not started does not pass. That is right where it runs on
// every replica, and where there is no leader election. A replica that waits to
// be elected would never pass: see LeaderReadyCheck.
func (f *Fleet) ReadyCheck(share float64) healthz.Checker {
	return func(*http.Request) error {
		if !f.synced.Load() {
			return errors.New(unread)
		}
		ready, all := 0, 0
		f.keepers.Range(func(_, k any) bool {
			switch k.(*keeper).status.Load().State {
			case Leaving:
				return true
			case Ready:
				ready++
			}
			all++
			return true
		})
		if all > 0 && float64(ready)/float64(all) < share {
			return fmt.Errorf("%d of %d clusters are ready, %.0f %% must be", ready, all, share*100)
		}
		return nil
	}
}

// LeaderReadyCheck is ReadyCheck for a fleet that runs on the elected replica
// alone, which is what the manager does by default where there is leader
// election. The channel is the manager's Elected(), which is closed when this
// replica is the leader. One that waits for that is a good stand-by and passes:
// otherwise a rolling update without a replica to spare would wait for it, and
// it for the leader before. A fleet that has started needs its share, elected or
// not.
//
// Without leader election use ReadyCheck: there, too, the channel is open for a
// moment at the start, and nobody is standing by.
func (f *Fleet) LeaderReadyCheck(share float64, elected <-chan struct{}) healthz.Checker {
	check := f.ReadyCheck(share)
	return func(req *http.Request) error {
		select {
		case <-elected:
		default:
			if !f.hasStarted() {
				return nil
			}
		}
		return check(req)
	}
}

func (f *Fleet) hasStarted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}
