// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/apiserver"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// Options of a cluster or fleet. The zero value is useful.
type Options struct {
	// Name of the cluster; in a fleet, a number follows.
	// Default: cluster.
	Name string
	// Scheme holds types to serve besides the built-in ones. Each needs a
	// list type. Types that have a status field have a status subresource.
	// Default: none.
	Scheme *runtime.Scheme
	// ClusterScoped lists the kinds of Scheme that are not namespaced.
	// Default: none.
	ClusterScoped []schema.GroupKind
	// Objects are created in every cluster, in this order, before it is
	// returned. Default: none.
	Objects []client.Object
	// History is how many writes a cluster keeps for each resource. A watch
	// from an earlier write expires, as does one whose client reads too
	// slowly. Default: 4096.
	History int
	// BookmarkInterval is the time between bookmarks on a watch.
	// Default: 1 minute, as in a real API server.
	BookmarkInterval time.Duration
	// WatchWriteTimeout is how long the client of a watch may take to read
	// an event before the watch is closed. Default: 30 seconds.
	WatchWriteTimeout time.Duration
}

func (o Options) name() string { return cmp.Or(o.Name, "cluster") }

func (o Options) types() *apiserver.Types {
	if o.Scheme == nil && len(o.ClusterScoped) == 0 {
		return apiserver.DefaultTypes()
	}
	var schemes []*runtime.Scheme
	key := typesKey{clusterScoped: fmt.Sprint(o.ClusterScoped)}
	if o.Scheme != nil {
		schemes = append(schemes, o.Scheme)
		key.scheme, key.kinds = o.Scheme, len(o.Scheme.AllKnownTypes())
	}
	if last := latest.Load(); last != nil && last.key == key {
		return last.types
	}
	types := apiserver.NewTypes(o.ClusterScoped, schemes...)
	latest.Store(&sharedTypes{key, types})
	return types
}

// latest are the latest types that were made. Clusters made one after the other
// often have the same ones.
var latest atomic.Pointer[sharedTypes]

type sharedTypes struct {
	key   typesKey
	types *apiserver.Types
}

type typesKey struct {
	scheme *runtime.Scheme
	// kinds changes when types are added to the scheme.
	kinds         int
	clusterScoped string
}

// Cluster is an API server with the data of one cluster. All methods may be
// called concurrently.
type Cluster struct {
	name   string
	tb     testing.TB
	server *apiserver.Server
}

// New starts a cluster, which is closed when the test ends. It ends the test if
// the cluster cannot start. It takes at most one Options.
//
// A new cluster has the namespaces default, kube-system, kube-public and
// kube-node-lease. The UID of kube-system identifies the cluster.
func New(tb testing.TB, options ...Options) *Cluster {
	tb.Helper()
	o := only(tb, options)
	return start(tb, o.name(), o, o.types())
}

func only(tb testing.TB, options []Options) Options {
	tb.Helper()
	switch len(options) {
	case 0:
		return Options{}
	case 1:
		return options[0]
	}
	tb.Fatalf("mctest: %d Options, at most one is allowed", len(options))
	return Options{}
}

func start(tb testing.TB, name string, o Options, types *apiserver.Types) *Cluster {
	tb.Helper()
	server, err := apiserver.New(apiserver.Options{
		Types:             types,
		History:           o.History,
		BookmarkInterval:  o.BookmarkInterval,
		WatchWriteTimeout: o.WatchWriteTimeout,
	})
	if err != nil {
		tb.Fatalf("mctest: starting %s: %v", name, err)
	}
	c := &Cluster{name: name, tb: tb, server: server}
	tb.Cleanup(c.Close)
	for _, object := range o.Objects {
		if err := c.Create(object.DeepCopyObject().(client.Object)); err != nil {
			tb.Fatalf("mctest: setting up %s: %v", name, err)
		}
	}
	return c
}

// Name returns the name of the cluster, which is unique in its fleet.
func (c *Cluster) Name() string { return c.name }

// Scheme returns the types that the cluster serves. It must not be changed.
func (c *Cluster) Scheme() *runtime.Scheme { return c.server.Scheme() }

// Config returns a new config for the cluster's administrator. It has no rate
// limit.
//
// After [Cluster.Move] or [Cluster.RotateCA] earlier configs no longer work
// for new connections.
func (c *Cluster) Config() *rest.Config {
	return c.ConfigFor(c.server.AdminToken())
}

// ConfigFor returns a new config with a bearer token, which may be empty.
func (c *Cluster) ConfigFor(token string) *rest.Config {
	config := c.server.Anonymous()
	config.BearerToken = token
	return config
}

// UID returns the UID of the namespace kube-system, which identifies the cluster.
func (c *Cluster) UID() types.UID {
	namespace := &corev1.Namespace{}
	if err := c.Get(client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return ""
	}
	return namespace.UID
}

// Move restarts the cluster at another address, with the same objects, tokens
// and certificates. The old address refuses connections.
func (c *Cluster) Move() {
	c.tb.Helper()
	c.check("moving", c.server.Move())
}

// Rebuild replaces the cluster by a new one at the same address: it has only the
// initial namespaces, kube-system has another UID, and resource versions start
// again. Tokens and certificates stay, and all connections are closed. A client
// that resumes a watch of the old cluster misses writes in the new one, as with
// a real cluster.
func (c *Cluster) Rebuild() {
	c.tb.Helper()
	c.check("rebuilding", c.server.Rebuild())
}

// Snapshot is the state of a cluster at one time. It can be restored more than once.
type Snapshot struct{ content *store.Snapshot }

// Snapshot returns the present state: the objects and the resource version.
func (c *Cluster) Snapshot() Snapshot { return Snapshot{c.server.Snapshot()} }

// Restore returns the cluster to an earlier state, as if its data had been restored
// from a backup: objects, UIDs and the resource version are those of the snapshot,
// and there is no history. All connections are closed. As with a real API server, a
// watch from a later resource version gets no events before that version is passed,
// and a list fails.
func (c *Cluster) Restore(s Snapshot) {
	c.tb.Helper()
	c.check("restoring", c.server.Restore(s.content))
}

// RotateCA gives the cluster a new certificate authority and certificate.
// Open connections stay open; client certificates of the old authority are no
// longer accepted.
func (c *Cluster) RotateCA() {
	c.tb.Helper()
	c.check("rotating the CA of", c.server.RotateAuthority())
}

// Close stops the cluster, and waits until nothing of it runs. The end of the
// test does the same.
func (c *Cluster) Close() { c.server.Close() }

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

// AddToken adds a bearer token of a user, who is a member of the groups and of
// system:authenticated. A SelfSubjectReview returns both. Any user may do
// everything.
func (c *Cluster) AddToken(token, user string, groups ...string) {
	c.server.AddToken(token, apiserver.User{Username: user, Groups: groups}, time.Time{})
}

// AddExpiringToken is AddToken with a time after which the token is rejected.
func (c *Cluster) AddExpiringToken(token string, expires time.Time, user string, groups ...string) {
	c.server.AddToken(token, apiserver.User{Username: user, Groups: groups}, expires)
}

// RevokeToken rejects requests with a token with 401. Open watches stay open;
// [Cluster.CloseConnections] closes them.
func (c *Cluster) RevokeToken(token string) { c.server.RevokeToken(token) }

// AdminToken returns the token of [Cluster.Config]. It may be revoked.
func (c *Cluster) AdminToken() string { return c.server.AdminToken() }

// ClientCertificate issues a certificate and its key, both in PEM, for a user. A
// bearer token in a request takes precedence.
func (c *Cluster) ClientCertificate(user string, groups ...string) (certificate, key []byte) {
	c.tb.Helper()
	certificate, key, err := c.server.ClientCertificate(user, groups...)
	c.check("issuing a certificate in", err)
	return certificate, key
}

// check fails the test for an error of the cluster's server.
func (c *Cluster) check(doing string, err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Errorf("mctest: %s %s: %v", doing, c.name, err)
	}
}
