// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest

// Requests counts the requests that came in since the start or
// [Cluster.ResetRequests], those that failed included. Verb and resource are as
// in [Fault.For] and [Fault.On]; empty ones match all. Requests that concern no
// resource have their path as resource and their method, in lower case, as
// verb.
func (c *Cluster) Requests(verb, resource string) int { return c.server.Requests(verb, resource) }

// ResetRequests starts counting requests anew.
func (c *Cluster) ResetRequests() { c.server.ResetRequests() }

// OpenWatches counts the watches of a resource that are open now; all, if it is
// empty. The resource is as in [Fault.On].
func (c *Cluster) OpenWatches(resource string) int { return c.server.OpenWatches(resource) }

// Connections counts the TCP connections that are open now.
func (c *Cluster) Connections() int { return c.server.Connections() }
