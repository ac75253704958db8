// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Backend connects clusters. Its methods are called concurrently by all workers.
type Backend interface {
	// Connect resolves a profile to a connection, which is released when it is no
	// longer used. It sends no request to the cluster.
	Connect(ctx context.Context, profile *inventory.Profile) (Connection, error)

	// Indexed returns a new cluster with the field indexes of all clusters.
	Indexed(name multicluster.ClusterName, cl cluster.Cluster) cluster.Cluster
}

// Connection is a connection to one cluster. It is used by one worker, but its
// methods may be called concurrently.
type Connection interface {
	// Server is the URL of the API server, without user information.
	Server() string
	// Provider is the name of the access provider in use, or "".
	Provider() string
	// Fingerprint is equal for connections that are the same. If it is "", the
	// connection equals no other.
	Fingerprint() string
	// Expiry returns when the credential expires, zero if that is not known.
	Expiry() time.Time

	// CanProbe reports whether Probe can be called.
	CanProbe() bool
	// Probe sends a request to the cluster and returns the UID of the namespace
	// kube-system, or "" if it cannot be read.
	Probe(ctx context.Context) (uid string, err error)
	// AliveSince reports whether the cluster has sent data since that time.
	AliveSince(since time.Time) bool
	// Suspect reports whether, since the last call, a connection was dropped or
	// credentials were refused (401): the cluster must be probed, whatever it sends.
	Suspect() bool
	// OpenWatches returns the number of open watches.
	OpenWatches() int

	// Informers returns the informers of the cluster's cache, nil if they are not
	// known.
	Informers() *informer.Set

	// NewCluster creates the cluster. It is called at most once.
	NewCluster(ctx context.Context, profile *inventory.Profile) (cluster.Cluster, error)
	// Config returns a copy of the configuration for new clients, or nil if only
	// the cluster has one.
	Config() *rest.Config
	// Switch makes clients of this connection use the next one, whose resources it
	// takes over. It reports false, and changes nothing, if that is not possible.
	Switch(next Connection) bool

	// Close makes later requests fail. CloseIdle closes connections without
	// requests. Release ends all requests and frees all resources; it may be called
	// more than once.
	Close()
	CloseIdle()
	Release()
}
