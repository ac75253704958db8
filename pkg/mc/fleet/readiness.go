// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
)

// ReadyCheck returns a check for the manager's readiness probe. It passes when the
// inventory has been listed and at least that share of its clusters, from 0 to 1,
// is Ready. An empty inventory passes. Clusters that are Leaving, and duplicates, do not count.
//
// A fleet that has not started does not pass, so a replica that waits for its
// election never does: use LeaderReadyCheck there.
func (f *Fleet) ReadyCheck(share float64) healthz.Checker {
	return func(*http.Request) error {
		if !f.synced.Load() {
			return errors.New(notSynced)
		}
		ready, all := 0, 0
		f.eachWorker(func(w *worker.Worker) {
			switch w.Status().State {
			case Leaving, Duplicate:
				return
			case Ready:
				ready++
			}
			all++
		})
		if all > 0 && float64(ready)/float64(all) < share {
			return fmt.Errorf("%d of %d clusters are ready, need %.0f %%", ready, all, share*100)
		}
		return nil
	}
}

// LeaderReadyCheck is ReadyCheck for a fleet that runs only on the elected replica,
// which is the manager's default with leader election. The channel is the manager's
// Elected(). A replica that is not elected passes while its fleet has not started:
// otherwise a rolling update would wait for it, and it for the current leader. A
// fleet that has started needs its share of Ready clusters.
//
// Without leader election use ReadyCheck.
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
