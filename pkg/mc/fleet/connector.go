// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
)

// Connector connects clusters that are not built from a rest.Config: existing
// cluster objects, or namespaces of one cluster that are treated as clusters. They
// have the same states, limits, probes and backoff as other clusters. Their
// connection cannot be switched: a changed connection re-engages the cluster.
//
// Its methods may be called concurrently. If a Connector is a
// credentials.ChangeNotifier, Connect is called again for all profiles after each
// change that it reports.
type Connector interface {
	// Connect returns a connection to the profile's cluster. After an error it is
	// called again, with backoff. It must return when the context ends. While the
	// cluster is engaged, it is called again when the profile's access providers
	// change, when the profile was recreated, and, for a connection with a
	// fingerprint, when Probe fails with a 401 (apierrors.IsUnauthorized).
	Connect(ctx context.Context, profile *inventory.Profile) (*Connection, error)
}

// Connection is a connection of a Connector to one cluster.
type Connection struct {
	// Cluster is engaged. Required. Its Start is called once and must return when
	// its context ends. If the cluster is run by other code, Start should only wait
	// for that.
	Cluster cluster.Cluster

	// Fingerprint is compared with that of the next connection: if they are equal,
	// the current connection stays and the next one is closed; otherwise the cluster
	// is re-engaged. An empty fingerprint equals no other.
	Fingerprint string

	// Server is the address that the status shows. Optional.
	Server string

	// Probe sends a request to the cluster and returns the UID of its namespace
	// kube-system, or another UID that identifies the cluster. If the UID changes,
	// the cluster is re-engaged; an empty one is not compared. Without a Probe the
	// cluster counts as healthy.
	Probe func(ctx context.Context) (uid string, err error)

	// Close is called once, when the cluster is disengaged or the connection is not
	// used. Pending requests should fail then. Optional.
	Close func()
}

// staticConnection is the worker.Connection of a Connection.
type staticConnection struct {
	of      *Connection
	release func()
}

var _ worker.Connection = &staticConnection{}

func connectStatic(ctx context.Context, connector Connector, profile *inventory.Profile) (worker.Connection, error) {
	of, err := connector.Connect(ctx, profile)
	if err != nil {
		return nil, err
	}
	if of == nil || of.Cluster == nil {
		return nil, errors.New("the Connector returned no cluster")
	}
	c := &staticConnection{of: of, release: func() {}}
	if of.Close != nil {
		c.release = sync.OnceFunc(of.Close)
	}
	return c, nil
}

// NewCluster implements worker.Connection.
func (c *staticConnection) NewCluster(context.Context, *inventory.Profile) (cluster.Cluster, error) {
	return c.of.Cluster, nil
}

// Probe implements worker.Connection.
func (c *staticConnection) Probe(ctx context.Context) (uid string, err error) { return c.of.Probe(ctx) }

// The following methods implement worker.Connection.

func (c *staticConnection) Server() string                { return identity.Redact(c.of.Server) }
func (c *staticConnection) Provider() string              { return "" }
func (c *staticConnection) Fingerprint() string           { return c.of.Fingerprint }
func (c *staticConnection) Expiry() time.Time             { return time.Time{} }
func (c *staticConnection) CanProbe() bool                { return c.of.Probe != nil }
func (c *staticConnection) AliveSince(time.Time) bool     { return false }
func (c *staticConnection) Suspect() bool                 { return false }
func (c *staticConnection) OpenWatches() int              { return 0 }
func (c *staticConnection) Informers() *informer.Set      { return nil }
func (c *staticConnection) Config() *rest.Config          { return nil }
func (c *staticConnection) Switch(worker.Connection) bool { return false }
func (c *staticConnection) Close()                        {}
func (c *staticConnection) CloseIdle()                    {}
func (c *staticConnection) Release()                      { c.release() }
