// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// State is how far a cluster is on its way into the fleet or out of it.
type State string

const (
	// Pending: on the roll, nothing tried yet.
	Pending State = "Pending"
	// Connecting: credentials are resolved and the cluster is asked who it is.
	Connecting State = "Connecting"
	// Syncing: the cluster's caches are filling.
	Syncing State = "Syncing"
	// Ready: the cluster is engaged.
	Ready State = "Ready"
	// Degraded: the cluster is engaged, but fails its probes. Its caches can be
	// read; its requests wait.
	Degraded State = "Degraded"
	// Backoff: the last attempt failed, the next is waited for.
	Backoff State = "Backoff"
	// Leaving: the cluster is going, and what was started for it is ending.
	Leaving State = "Leaving"
)

// ClusterStatus is the state of one cluster. It holds no secret.
type ClusterStatus struct {
	// Name is the cluster's name in the fleet.
	Name multicluster.ClusterName
	// Profile is the key of its profile.
	Profile inventory.Key
	// State is the cluster's state.
	State State
	// Since is when it came to that state.
	Since time.Time
	// Server is the URL of its API server, as far as it is known.
	Server string
	// LastError is what failed last, "" if nothing has since it became Ready.
	LastError string
}

// String gives the state and what failed last.
func (s ClusterStatus) String() string {
	if s.LastError == "" {
		return string(s.State)
	}
	return string(s.State) + ": " + s.LastError
}
