// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Connector connects clusters that are not built from a rest.Config: ones that
// are there already, or namespaces of one cluster that stand for clusters. They
// have the same states, limits, gate, probes and backoff as others; only their
// access is not exchanged under them.
//
// Its methods may be called from any goroutine. A Connector that is a
// credentials.ChangeNotifier has Connect called again for all profiles when it
// says so.
type Connector interface {
	// Connect returns a connection to the profile's cluster, or an error, after
	// which it is tried again with backoff. It must return when the context
	// ends. While the cluster is engaged, Connect is called again when the
	// profile's access providers change, when the profile turns out to have been
	// created anew, and, if connections can be compared, when a Probe fails with a
	// 401 (apierrors.IsUnauthorized).
	Connect(ctx context.Context, profile *inventory.Profile) (*Connection, error)
}

// Connection is one to a cluster that a Connector made.
type Connection struct {
	// Cluster is what is engaged. Required. Its Start is called once and must
	// return when its context ends; for one that somebody else runs, that is all
	// that it should do.
	Cluster cluster.Cluster

	// Fingerprint tells connections apart. If Connect returns one with the
	// fingerprint of the one in use, that one stays and the new one is closed;
	// otherwise the cluster is engaged anew. An empty one equals no other.
	Fingerprint string

	// Server is what the status shows as the cluster's address. May be empty.
	Server string

	// Probe asks the cluster whether it answers, and for the UID of its
	// namespace kube-system, or another that identifies it. If that changes, the
	// cluster is engaged anew; an empty one is not compared. Nil means that the
	// cluster is taken to be healthy.
	Probe func(ctx context.Context) (uid string, err error)

	// Close is called once, when the cluster is to end or is not used. Requests
	// that hang should fail from then on. May be nil.
	Close func()
}

// errNoCluster is of a Connector that does not keep to its contract.
var errNoCluster = errors.New("the connector has returned no cluster")

// connection finds the way that the Connector gives.
func (k *keeper) connection(a *attempt) (*approach, error) {
	c, err := k.fleet.options.Connector.Connect(a, a.profile)
	if err != nil {
		return nil, err
	}
	if c == nil || c.Cluster == nil {
		return nil, errNoCluster
	}
	way := &approach{server: shown(c.Server), fingerprint: c.Fingerprint, cluster: c.Cluster, leave: func() {}}
	if c.Close != nil {
		way.leave = sync.OnceFunc(c.Close)
	}
	if c.Probe != nil {
		way.identify = func(ctx context.Context, profile *inventory.Profile) (identity, error) {
			uid, err := c.Probe(ctx)
			return identity{uid: uid, clusterID: inventory.ClusterID(profile)}, err
		}
	}
	return way, nil
}
