// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// State is the state of a cluster in the fleet.
type State = worker.State

// The states, in the order in which a cluster passes through them.
const (
	// Pending means that the cluster waits: for a startup slot, for another profile of
	// its name, or to be connected again.
	Pending = worker.Pending
	// Connecting means that credentials are resolved and the cluster's identity is
	// checked.
	Connecting = worker.Connecting
	// Syncing means that the cluster is reachable, and its caches are syncing, or it
	// is being engaged.
	Syncing = worker.Syncing
	// Ready means that the cluster is engaged.
	Ready = worker.Ready
	// Degraded means that the cluster is engaged, but health probes fail. Its caches
	// can be read; its requests wait in the queues.
	Degraded = worker.Degraded
	// Backoff means that the last attempt failed and the next one is delayed.
	Backoff = worker.Backoff
	// Duplicate means that the cluster of the profile is, or will be, engaged under the
	// name ClusterStatus.DuplicateOf, with another profile. The profile has no cache and
	// no connection.
	Duplicate = worker.Duplicate
	// Leaving means that the cluster is being disengaged.
	Leaving = worker.Leaving
)

var states = []State{Pending, Connecting, Syncing, Ready, Degraded, Backoff, Duplicate, Leaving}

// ClusterStatus is the status of one cluster. It contains no secret.
type ClusterStatus struct {
	// Name is the cluster name.
	Name multicluster.ClusterName `json:"name"`
	// Profile is the key of the profile, in JSON "namespace/name".
	Profile inventory.Key `json:"profile"`
	// State is the state of the cluster.
	State State `json:"state"`
	// Reason is why the cluster is in that state.
	Reason Reason `json:"reason"`
	// Since is when the cluster entered the state.
	Since time.Time `json:"since"`
	// LastError is the last error since the cluster was Ready, or "". For a
	// duplicate it names the profile whose cluster has the name; with
	// AccessUpdateFailed, it is why the new access cannot be used; with Engaged, it
	// names the caches that are behind the cluster (see Behind).
	LastError string `json:"lastError,omitempty"`
	// AccessError is why the profile's latest access cannot be used, while the cluster
	// keeps its current connection; see AccessUpdateFailed. It is set for clusters
	// that are Ready or Degraded.
	AccessError string `json:"accessError,omitempty"`
	// Server is the URL of the API server, without user information.
	Server string `json:"server,omitempty"`
	// Provider is the name of the access provider in use (KEP-5339).
	Provider string `json:"provider,omitempty"`
	// UID is the UID of the namespace kube-system, if it can be read.
	UID string `json:"uid,omitempty"`
	// ClusterID and ClusterSet are properties of the profile (KEP-2149).
	ClusterID  string `json:"clusterID,omitempty"`
	ClusterSet string `json:"clusterSet,omitempty"`
	// Version is the Kubernetes version in the profile (KEP-4322).
	Version string `json:"version,omitempty"`
	// CredentialExpiry is when the credential in use expires, zero if unknown.
	CredentialExpiry time.Time `json:"credentialExpiry,omitzero"`
	// DuplicateOf is the name of the cluster in state Duplicate.
	DuplicateOf multicluster.ClusterName `json:"duplicateOf,omitempty"`
	// Alternates are other profiles of the same cluster that can take the place of
	// Profile, in that order. See Options.TrustDomain.
	Alternates []inventory.Key `json:"alternates,omitempty"`
	// Conflict names profiles that say that they are of this cluster, while another
	// cluster responds there.
	Conflict string `json:"conflict,omitempty"`
	// OpenWatches is the number of open watches.
	OpenWatches int `json:"openWatches"`
	// Queued is the number of requests for the cluster in the queues of
	// controllers.
	Queued int `json:"queued"`
}

// String returns the state, the reason and the errors.
func (s ClusterStatus) String() string {
	text := fmt.Sprintf("%s (%s)", s.State, s.Reason)
	if s.LastError != "" {
		text += ": " + s.LastError
	}
	if s.AccessError != "" && s.AccessError != s.LastError {
		text += "; the new access cannot be used: " + s.AccessError
	}
	return text
}

// newStatus returns the status that a worker keeps.
func newStatus(s worker.Status) ClusterStatus {
	return ClusterStatus{
		Name: s.Name, Profile: s.Profile, State: s.State, Reason: s.Reason, Since: s.Since, LastError: s.LastError, AccessError: s.AccessError,
		Server: s.Server, Provider: s.Provider, UID: s.UID,
	}
}

// currentStatus returns the complete status of a worker's cluster.
func currentStatus(w *worker.Worker) ClusterStatus {
	status := newStatus(w.Status())
	status.setProfile(w.Profile())
	for _, alternate := range w.Alternates() {
		status.Alternates = append(status.Alternates, inventory.KeyOf(alternate))
	}
	status.Conflict = w.Conflict()
	if status.State == Duplicate {
		status.DuplicateOf, _ = w.DuplicateOf()
	}
	if cl := w.Engaged(); cl != nil {
		status.OpenWatches = cl.Connection().OpenWatches()
		status.CredentialExpiry = cl.Connection().Expiry()
		status.Queued = cl.Backlog()
		if status.State == Ready && status.LastError == "" {
			status.LastError = informer.Describe(cl.Connection().Informers().Behind())
		}
	}
	return status
}

// setProfile sets the fields that show the profile.
func (s *ClusterStatus) setProfile(profile *inventory.Profile) {
	s.ClusterID, s.ClusterSet = inventory.ClusterID(profile), inventory.ClusterSet(profile)
	s.Version = profile.Status.Version.Kubernetes
}

// statusJSON is a ClusterStatus with keys of the form "namespace/name".
type statusJSON struct {
	*statusFields
	Profile    string   `json:"profile"`
	Alternates []string `json:"alternates,omitempty"`
}

// statusFields has the fields of a ClusterStatus without its methods.
type statusFields ClusterStatus

// MarshalJSON implements json.Marshaler.
func (s ClusterStatus) MarshalJSON() ([]byte, error) {
	out := statusJSON{statusFields: (*statusFields)(&s), Profile: s.Profile.String()}
	for _, key := range s.Alternates {
		out.Alternates = append(out.Alternates, key.String())
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *ClusterStatus) UnmarshalJSON(data []byte) error {
	in := statusJSON{statusFields: (*statusFields)(s)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	var err error
	if s.Profile, err = parseKey(in.Profile); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	s.Alternates = nil
	for i, text := range in.Alternates {
		key, err := parseKey(text)
		if err != nil {
			return fmt.Errorf("alternates[%d]: %w", i, err)
		}
		s.Alternates = append(s.Alternates, key)
	}
	return nil
}

func parseKey(text string) (inventory.Key, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || name == "" {
		return inventory.Key{}, fmt.Errorf("%q is not of the form namespace/name", text)
	}
	return inventory.Key{Namespace: namespace, Name: name}, nil
}
