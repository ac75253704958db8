// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest

import (
	"slices"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/apiserver"
)

// Fault is a way in which a cluster fails, put in force by [Cluster.Fault]. It
// is a value: [Fault.On] and [Fault.For] return narrower copies.
type Fault struct {
	fault apiserver.Fault
}

var (
	// Hang accepts requests and never answers. A request waits until its
	// client gives up, or is answered when the fault is lifted. Open watches
	// fall silent, and catch up afterwards.
	Hang = Fault{apiserver.Fault{Kind: apiserver.Hang}}
	// Refuse closes the listener and all connections: the server is down. The
	// port stays the same. It affects the whole cluster; On and For do not
	// narrow it.
	Refuse = Fault{apiserver.Fault{Kind: apiserver.Refuse}}
	// Freeze stops all bytes on all connections, HTTP/2 health checks
	// included: the network drops everything. It affects the whole cluster;
	// On and For do not narrow it.
	Freeze = Fault{apiserver.Fault{Kind: apiserver.Freeze}}
	// Reset answers with a TCP reset: at once on all connections, open and
	// new, or, if narrowed, on the connection of a matching request.
	Reset = Fault{apiserver.Fault{Kind: apiserver.Reset}}
	// Unauthorized answers 401. Open watches stay open.
	Unauthorized = Fault{apiserver.Fault{Kind: apiserver.Unauthorized}}
	// Forbidden answers 403. Open watches stay open.
	Forbidden = Fault{apiserver.Fault{Kind: apiserver.Forbidden}}
	// Expired ends open watches with 410, and new ones that resume from a
	// resource version, so that clients have to list again.
	Expired = Fault{apiserver.Fault{Kind: apiserver.Expired}}
	// Unavailable answers 503. Open watches stay open.
	Unavailable = Fault{apiserver.Fault{Kind: apiserver.Unavailable}}
)

// TooManyRequests answers 429 and asks the client to retry after a time, which is
// rounded up to whole seconds and is at least one second.
func TooManyRequests(retryAfter time.Duration) Fault {
	return Fault{apiserver.Fault{Kind: apiserver.TooManyRequests, Duration: retryAfter}}
}

// Slow delays the answer to each request, and the start of each watch. It can be
// combined with other faults.
func Slow(by time.Duration) Fault {
	return Fault{apiserver.Fault{Kind: apiserver.Slow, Duration: by}}
}

// On limits the fault to some resources: "pods", "deployments.apps",
// "pods/status", or a path such as "/version" for requests that concern no
// resource. A name without a group matches the resource in any group, and a name
// without a subresource matches no subresource.
func (f Fault) On(resources ...string) Fault {
	f.fault.Resources = append(slices.Clone(f.fault.Resources), resources...)
	return f
}

// For limits the fault to some verbs: get, list, watch, create, update, patch,
// delete or deletecollection.
func (f Fault) For(verbs ...string) Fault {
	f.fault.Verbs = append(slices.Clone(f.fault.Verbs), verbs...)
	return f
}

// Fault puts a fault in force, besides others, until lift or [Cluster.Clear] is
// called. Requests that arrive after it returns fail. Lift may be called more
// than once.
func (c *Cluster) Fault(fault Fault) (lift func()) {
	c.tb.Helper()
	lifted, err := c.server.Inject(fault.fault)
	if err != nil {
		c.check("injecting a fault into", err)
		return func() {}
	}
	return func() { c.check("lifting a fault of", lifted()) }
}

// Clear lifts all faults.
func (c *Cluster) Clear() {
	c.tb.Helper()
	c.check("lifting all faults of", c.server.LiftAll())
}

// CloseConnections closes all connections, and with them all watches. Clients may
// connect again at once.
func (c *Cluster) CloseConnections() { c.server.CloseConnections() }

// Compact drops the history of all resources. A watch or list from an earlier
// resource version fails with 410. Open watches stay open, unless they have not
// yet sent the latest writes.
func (c *Cluster) Compact() { c.server.Compact() }
