// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"time"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// State is the state of a cluster in the fleet.
type State string

// The states are documented in package fleet.
const (
	Pending    State = "Pending"
	Connecting State = "Connecting"
	Syncing    State = "Syncing"
	Ready      State = "Ready"
	Degraded   State = "Degraded"
	Backoff    State = "Backoff"
	Duplicate  State = "Duplicate"
	Leaving    State = "Leaving"
)

// Status is what a worker knows of its cluster.
type Status struct {
	Name      multicluster.ClusterName
	Profile   inventory.Key
	State     State
	Reason    Reason
	Since     time.Time
	LastError string
	// AccessError is why the latest access cannot be used while the cluster is
	// engaged, "" if it can.
	AccessError string
	Server      string
	Provider    string
	UID         string
}
