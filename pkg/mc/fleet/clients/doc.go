// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package clients is for programs that hold references to ClusterProfiles
// (KEP-4322), namespace and name, in objects of their own, and want a client for the
// cluster of a reference. They need no fleet.
//
// # Setup
//
//	source, err := hub.New(mgr.GetConfig(), hub.Options{Cache: mgr.GetCache()})
//	…
//	members, err := clients.New(clients.Options{Source: source, Credentials: resolver})
//	…
//	err = mgr.Add(members) // runs on every replica
//
// # Usage
//
//	ref := types.NamespacedName{Namespace: object.Spec.ClusterProfileRef.Namespace, Name: object.Spec.ClusterProfileRef.Name}
//	member, err := members.Client(ctx, ref)
//	switch {
//	case errors.Is(err, clients.ErrProfileNotFound):
//		// set a condition; Events reconciles again when there is one
//	case err != nil:
//		return err // try again later
//	}
//	err = member.Create(ctx, job)
//
// [Clients.Client] is quick for a cluster that is in use, so it can be called for
// each reconcile. [Clients.Config] is for clientsets and other clients.
// [Clients.Events] reconciles what refers to a profile when that comes, goes or gets
// another access.
//
// # What it promises
//
//   - A cluster is connected by the first call that needs it, once for all callers
//     that wait. Nothing connects to the clusters that are not used, and no goroutine
//     or connection is kept for them.
//   - All clients for a profile share connections and credentials. Nothing is cached
//     but the REST mapping, which clusters with the same resources share.
//   - A client can be kept. It follows the profile: a new endpoint, certificate
//     authority or credential is used by the next request. If the changed access of a
//     profile cannot be resolved, the current one is kept, and the other is tried again.
//   - A cluster that nothing has used for [Options].IdleTimeout is disconnected. Open
//     watches and other requests under way count as use. The next request of a client
//     connects it again.
//   - When a profile is removed, its clients fail with [ErrProfileNotFound]. When it
//     is there again, they work again.
//   - A cluster or a plugin that hangs delays only callers that want this cluster, and
//     each of them until its context ends. An attempt to connect takes at most 30 s.
//     After a failure callers get the error at once, for a time that doubles from 1 s
//     to 30 s.
//
// # What it does not do
//
// It checks neither the health nor the identity of clusters. A client of a profile
// whose cluster was replaced by another one sends requests to the new one. Callers
// that build a cache over a client must expect that; a fleet handles it.
//
// It does not check who may use a profile: a program whose users write the references
// must. For example, it accepts only profiles in the namespace of the object.
//
// # Contexts
//
// Requests end with their context. One thing has none in controller-runtime: a client
// that is asked for a kind that it does not know sends a discovery request, which takes
// up to 30 s if the cluster hangs. Kinds that were there when the cluster was connected
// are known.
//
// # Beside a fleet
//
// A program that runs a fleet, too, gives both the same credentials.Resolver: then
// they share credentials and plugin runs. Connections are not shared.
package clients
