// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
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

// states has all of them, in the order in which a cluster goes through them.
var states = []State{Pending, Connecting, Syncing, Ready, Degraded, Backoff, Leaving}

// ClusterStatus is the state of one cluster. It holds no secret.
type ClusterStatus struct {
	// Name is the cluster's name in the fleet.
	Name multicluster.ClusterName `json:"name"`
	// Profile is the key of its profile.
	Profile inventory.Key `json:"profile"`
	// State is the cluster's state.
	State State `json:"state"`
	// Reason says why it is in that state.
	Reason Reason `json:"reason"`
	// Since is when it came to that state.
	Since time.Time `json:"since"`
	// LastError is what failed last, "" if nothing has since it became Ready.
	// For a profile whose cluster name another one has, it says which.
	LastError string `json:"lastError,omitempty"`
	// Server is the URL of its API server, without a user, as far as it is known.
	Server string `json:"server,omitempty"`
	// Provider is the name of the access provider in use (KEP-5339).
	Provider string `json:"provider,omitempty"`
	// UID is that of the cluster's namespace kube-system, where it can be read.
	UID string `json:"uid,omitempty"`
	// ClusterID and ClusterSet are what the profile says (KEP-2149).
	ClusterID  string `json:"clusterID,omitempty"`
	ClusterSet string `json:"clusterSet,omitempty"`
	// Version is the Kubernetes version that the profile gives (KEP-4322).
	Version string `json:"version,omitempty"`
	// CredentialExpiry is when the credential in use expires, zero if that is
	// not known.
	CredentialExpiry time.Time `json:"credentialExpiry,omitzero"`
	// Alternates are the profiles that lead to the same cluster and would take
	// over; see inventory.Dedupe.
	Alternates []inventory.Key `json:"alternates,omitempty"`
	// OpenWatches is the number of watches on the cluster.
	OpenWatches int `json:"openWatches"`
	// Queued is the number of requests for the cluster in the controllers'
	// queues.
	Queued int `json:"queued"`
}

// describe takes over what the profile says of the cluster.
func (s *ClusterStatus) describe(profile *inventory.Profile) {
	s.ClusterID, s.ClusterSet = inventory.ClusterID(profile), inventory.ClusterSet(profile)
	s.Version = profile.Status.Version.Kubernetes
	s.Alternates = inventory.Alternates(profile)
}

// String gives the state, its reason, and what failed last.
func (s ClusterStatus) String() string {
	text := fmt.Sprintf("%s (%s)", s.State, s.Reason)
	if s.LastError != "" {
		text += ": " + s.LastError
	}
	return text
}
