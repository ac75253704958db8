// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"

// Reason is why a cluster is in its state. Values are stable; more may be added.
// ClusterStatus.LastError has the details.
type Reason = worker.Reason

// Reasons of clusters that are Pending.
const (
	// Added means that the profile was added. If it is added again and again, the
	// cluster is in Backoff.
	Added = worker.Added
	// WaitingForStartupSlot means that ConnectionOptions.StartupLimit other clusters
	// are connecting or listing their objects. A cluster that responded, but lost its
	// slot, is Connecting.
	WaitingForStartupSlot = worker.WaitingForStartupSlot
	// DuplicateName means that another profile has, or had until now, the same
	// cluster name.
	DuplicateName = worker.DuplicateName
	// AccessChanged means that the profile's access changed while the cluster was
	// being connected. If that happens too often, the cluster is in Backoff.
	AccessChanged = worker.AccessChanged
	// IdentityChanged means that another cluster responds than the one that was
	// engaged, or its identity cannot be verified. If that happens too often, the
	// cluster is in Backoff.
	IdentityChanged = worker.IdentityChanged
)

// Reasons of clusters that are Connecting or Syncing.
const (
	// ResolvingAccess means that the credential method or the Connector runs.
	ResolvingAccess = worker.ResolvingAccess
	// CheckingIdentity means that the cluster has been sent its first request.
	CheckingIdentity = worker.CheckingIdentity
	// DuplicateCluster means that the same cluster is still being disengaged under
	// another name, whose profile was removed. Clusters are compared by identity, and
	// by endpoint if their identities cannot be compared.
	DuplicateCluster = worker.DuplicateCluster
	// SyncingCaches means that the cluster's caches are syncing. If the cluster is
	// Degraded, it responds again.
	SyncingCaches = worker.SyncingCaches
	// Engaging means that the cluster is engaged with controllers and other
	// components.
	Engaging = worker.Engaging
)

// Reasons of clusters that are Ready.
const (
	// Engaged means that the cluster is in use.
	Engaged = worker.Engaged
	// AccessUpdateFailed means that the profile was resolved again, since it or its
	// credentials changed or the cluster responded with 401, and that the result
	// cannot be used. The cluster works with its current connection until that fails
	// or the fleet restarts. The last error is one that another reason describes, such
	// as ResolveFailed or Unreachable. It is retried with backoff. A profile whose
	// access is no longer allowed (credentials.ErrDenied) is disengaged instead. A
	// cluster that is Degraded shows the error in ClusterStatus.AccessError.
	AccessUpdateFailed = worker.AccessUpdateFailed
)

// Reasons of clusters that are Degraded or in Backoff.
const (
	// ResolveFailed means that the credential method, the Connector or a REST option
	// failed or timed out, or that there is no credential for requests.
	ResolveFailed = worker.ResolveFailed
	// Unreachable means that no response was received.
	Unreachable = worker.Unreachable
	// CertificateInvalid means that the server's certificate cannot be verified with
	// the profile's certificate authority and server name, or has expired.
	CertificateInvalid = worker.CertificateInvalid
	// Unauthorized means that the cluster rejects the credentials (401).
	Unauthorized = worker.Unauthorized
	// TooManyRequests means that the cluster has too many requests (429) to connect
	// now. An engaged cluster with this response is Ready.
	TooManyRequests = worker.TooManyRequests
	// UnexpectedResponse means that the response is not from a healthy API server.
	UnexpectedResponse = worker.UnexpectedResponse
)

// Reasons of clusters that are in Backoff.
const (
	// SetupFailed means that the cluster could not be created.
	SetupFailed = worker.SetupFailed
	// CacheSyncTimeout means that the caches did not sync in time.
	CacheSyncTimeout = worker.CacheSyncTimeout
	// EngageFailed means that a component failed or timed out engaging the cluster.
	EngageFailed = worker.EngageFailed
	// CacheStopped means that the cluster's Start returned.
	CacheStopped = worker.CacheStopped
	// HealthProbeFailed means that no probe succeeded for ProbeOptions.DropAfter.
	HealthProbeFailed = worker.HealthProbeFailed
)

// Removed is the reason of a cluster that is Leaving: its profile was removed, or
// the fleet stops.
const Removed = worker.Removed
