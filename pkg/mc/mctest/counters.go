// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest

// Requests counts the requests since the start or [Cluster.ResetRequests], failed
// ones included. Verb and resource are as in [Fault.For] and [Fault.On]; empty
// ones match all. For requests that concern no resource, the resource is the
// path, and the verb is the method in lower case.
func (c *Cluster) Requests(verb, resource string) int { return c.server.Requests(verb, resource) }

// ResetRequests sets the counts of requests to zero.
func (c *Cluster) ResetRequests() { c.server.ResetRequests() }

// OpenWatches counts the open watches of a resource, which is as in [Fault.On];
// an empty one matches all.
func (c *Cluster) OpenWatches(resource string) int { return c.server.OpenWatches(resource) }

// Connections counts the open TCP connections.
func (c *Cluster) Connections() int { return c.server.Connections() }
