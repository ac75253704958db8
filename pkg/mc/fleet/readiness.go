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
// A fleet that has not started does not pass, so by default neither does a
// replica that waits to be elected: a rolling update would wait for it, and it
// for the replica before. Use the check where the fleet runs on all replicas; see
// WithProviderNeedLeaderElection of pkg/mc/manager.
func (f *Fleet) ReadyCheck(share float64) healthz.Checker {
	return func(*http.Request) error {
		if !f.synced.Load() {
			return errors.New("the inventory has not been read yet")
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
