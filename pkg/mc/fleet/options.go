// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Options configure a Fleet.
type Options struct {
	// Source lists the clusters. Required. The fleet restarts it when it fails.
	Source inventory.Source

	// Credentials turns a profile into a connection. Required unless Connector is
	// set. If it is a credentials.ChangeNotifier, all profiles are resolved again
	// after each change that it reports.
	Credentials credentials.Method

	// Connector connects clusters that are not built from a rest.Config. It
	// replaces Credentials. RESTOptions, ClusterOptions, ClusterOptionsFor and
	// NewCluster of the connection options do not apply.
	Connector Connector

	// ClusterName returns the cluster name of a profile. If several profiles have
	// the same cluster name, the first one seen is used and the others are
	// duplicates, which wait until it is removed; then the first in the order of
	// inventory.ComparePrecedence is next. Defaults to inventory.ClusterName:
	// "namespace/name", or the name that the source set.
	ClusterName func(profile *inventory.Profile) multicluster.ClusterName

	// A cluster with several profiles is engaged once, under the name of the profile that
	// was first seen, until all its profiles are removed. The others are in state
	// Duplicate, with the cluster's name. Profiles are of one cluster if the UID of the
	// namespace kube-system is the same or, where it cannot be read, if one of their
	// inventory.CorrelationKeys is.
	//
	// TrustDomain returns a text that is equal for profiles whose authors may act for
	// each other. Only they can take each other's place: if the profile in use is removed
	// or stops working, its cluster goes on with the next one, its name and its caches.
	// Profiles of other trust domains wait until all of those are removed, since their
	// authors can forge all evidence. Defaults to inventory.TrustDomain: those of one
	// namespace of one source.
	TrustDomain func(profile *inventory.Profile) string

	// KeepDuplicates engages a cluster once for each of its profiles.
	KeepDuplicates bool

	// IsReady reports whether the cluster of a profile should be connected. A
	// connected cluster is disconnected when it becomes false. Defaults to always
	// true.
	IsReady func(profile *inventory.Profile) bool

	// Connection configures how each cluster is connected and monitored.
	Connection ConnectionOptions
}

// ConnectionOptions configure how clusters are connected and monitored. All
// providers that are built on a Fleet have them. The zero value is usable.
type ConnectionOptions struct {
	// RESTOptions change the rest.Config of each cluster before it is used. They
	// may change fields that concern requests: UserAgent, Impersonate, QPS, Burst,
	// RateLimiter, ContentConfig, Timeout, WarningHandler, WrapTransport. QPS is -1
	// unless the credential method sets it: API Priority and Fairness of the API
	// server limits requests. Changing a field that concerns connections (Host,
	// APIPath, TLSClientConfig, DisableCompression, Transport, Dial, Proxy) is an
	// error of that cluster. They are called each time that credentials are
	// resolved and when a connection is switched. Impersonate and WrapTransport follow
	// the last call; everything else stays in effect while the cluster is engaged.
	RESTOptions []func(config *rest.Config) error

	// ClusterOptions are options of controller-runtime clusters, for all clusters.
	// By default a cluster has the Scheme of the manager that runs the fleet. If
	// one replaces Cache.NewInformer, the fleet does not keep the caches in step (see
	// Behind), and stopped watches are not drained.
	ClusterOptions []cluster.Option

	// ClusterOptionsFor returns options for the cluster of one profile. They are
	// applied after ClusterOptions and stay in effect while the cluster is engaged.
	// It may be called concurrently. Defaults to none.
	ClusterOptionsFor func(profile *inventory.Profile) []cluster.Option

	// NewCluster creates the cluster. It must use the transport of the config,
	// through which the fleet replaces credentials and endpoints. To replace it, or to
	// set another field that concerns connections (Host, TLSClientConfig, Dial, Proxy, …),
	// in the config or a copy of it, is an error of that cluster: set these in the
	// credentials. A wrapper that is added with Wrap is also part of the cluster's
	// GetConfig. Defaults to cluster.New.
	NewCluster func(ctx context.Context, profile *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error)

	// ConnectTimeout bounds one attempt to connect a cluster and sync its caches,
	// without the wait for a startup slot. It also bounds the wait for the caches of
	// a Degraded cluster that responds again, for the cluster's goroutines and running
	// reconciles when it is disengaged, and reads of a client with read-your-writes
	// consistency, which wait for the client's own writes, as well as its wait for
	// the cache before it writes. The context of the functions
	// called (credentials, Connector, NewCluster, Engage) ends with it. A function
	// that ignores its context keeps its own cluster from being tried again, and
	// Start from returning, but no other cluster from a startup slot. Defaults to
	// 30 s.
	ConnectTimeout time.Duration

	// StartupLimit is the number of startup slots: how many clusters connect, or
	// have sources of controllers list their objects for the first time, at once.
	// A cluster that has not responded within 1 s, or before 2 others per slot
	// have, waits without a slot. Defaults to 32. Negative means no limit.
	StartupLimit int

	// Probe configures the health probes of engaged clusters.
	Probe ProbeOptions

	// MaxCacheAge makes the client of each cluster refuse to create and to delete
	// (Create, Delete, DeleteAllOf and evictions) if the same Reconcile has read, in
	// any cluster of the fleet, a cache that was last known to be in step longer ago
	// (see Freshness), then or now. The same applies for as long as MaxCacheAge after
	// a cache was filled by a new list because the connection was lost, the cluster
	// was engaged again, or it was restored from a backup. The error is a
	// StaleCacheError. Updates, patches and Apply are not refused: resource versions
	// protect them, if they are used.
	//
	// Reads count that the context of a Reconcile of this runtime, or one made from
	// it, was passed to. Without such a context, a client refuses if a cache of its own
	// cluster that was read in this way is too old. Reads of the API server never
	// count.
	//
	// An idle watch is known to be in step by probes. So with less than
	// 3 × Probe.Interval + Probe.Timeout (35 s by default), or less than 2 min without
	// probes, writes are also refused from time to time for seconds while nothing is
	// wrong. It cannot be used with a Connector, or with ClusterOptions that replace
	// Cache.NewInformer, which is an error of that cluster. 0, the default, or less:
	// nothing is refused.
	MaxCacheAge time.Duration

	// MinBackoff and MaxBackoff bound the delay after a failed attempt, which
	// doubles each time, with 20 % jitter; a cluster that is too busy (429) can ask for
	// a longer one, up to MaxBackoff. It is reset when the profile or the
	// credentials change, or when the cluster has been engaged for longer than
	// MaxBackoff. A change ends the delay at once; after five changes in a row
	// each waits for a delay that doubles in the same way. They default to 1 s and
	// 5 min.
	MinBackoff, MaxBackoff time.Duration

	// Clock is used for backoff, probes and all limits above, not by clients,
	// caches, the Source or the credentials. It is for tests, for example a
	// FakeClock of k8s.io/utils/clock/testing. Defaults to the real clock.
	Clock clock.WithTickerAndDelayedExecution
}

// ProbeOptions configure the health probes of engaged clusters. A probe reads
// the namespace kube-system. A response of an API server that forbids it, does
// not have it, or has too many requests (429) counts as success; responses of
// anything that is not Kubernetes count as failures. A cluster that sends data, such
// as events of watches, is not probed, unless a connection was dropped, as the
// endpoint may lead to another cluster now, or a request was answered with 401: an
// open watch goes on with credentials that were revoked. If a probe is not answered
// in half of Timeout, another one is sent over a new connection; if that is answered
// first, it replaces the connections in use, and watches resume over it.
type ProbeOptions struct {
	// Interval is the time in which a cluster is probed after a dropped connection or
	// a 401, and while it is Degraded. Up to 20 % jitter is added to it. A cluster that
	// stops responding is Degraded within FailureThreshold × Interval and the time of
	// the probes. So a cluster that responds and sends nothing is probed every
	// 2 × Interval only, and more often after a failure; with a FailureThreshold of 1
	// or 2, every Interval. Defaults to 10 s. Negative means no probes.
	Interval time.Duration

	// Timeout bounds one probe. Defaults to 5 s.
	Timeout time.Duration

	// FailureThreshold is the number of consecutive failures after which a cluster
	// is Degraded: its requests stay in the queues and take no worker. After one
	// success it is Ready again when its caches are in step, at the latest after
	// ConnectTimeout. Defaults to 3.
	FailureThreshold int

	// DropAfter is how long probes may fail before the cluster is disengaged and
	// connected again, with backoff. Defaults to 10 min.
	DropAfter time.Duration
}

// NameByMemberID is an Options.ClusterName. It returns the member ID of the profile
// (KEP-4322), or inventory.ClusterName for a profile without one. The author of a
// profile chooses its member ID, and so the cluster's name: use it only if all authors
// are trusted with the names of all clusters.
func NameByMemberID(profile *inventory.Profile) multicluster.ClusterName {
	return multicluster.ClusterName(cmp.Or(inventory.MemberID(profile), inventory.ClusterName(profile)))
}

func (o *Options) complete() error {
	if o.Source == nil {
		return errors.New("fleet: must specify Options.Source")
	}
	if (o.Credentials == nil) == (o.Connector == nil) {
		return errors.New("fleet: must specify either Options.Credentials or Options.Connector")
	}
	if o.Connector != nil && o.Connection.MaxCacheAge > 0 {
		return errors.New("fleet: MaxCacheAge cannot be used with a Connector, whose caches are not known: set it to 0")
	}
	if o.ClusterName == nil {
		o.ClusterName = func(profile *inventory.Profile) multicluster.ClusterName {
			return multicluster.ClusterName(inventory.ClusterName(profile))
		}
	}
	if o.TrustDomain == nil {
		o.TrustDomain = inventory.TrustDomain
	}
	if o.IsReady == nil {
		o.IsReady = func(*inventory.Profile) bool { return true }
	}
	o.Connection.complete()
	return nil
}

func (o *ConnectionOptions) complete() {
	if o.NewCluster == nil {
		o.NewCluster = func(_ context.Context, _ *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
			return cluster.New(config, opts...)
		}
	}
	if o.StartupLimit == 0 {
		o.StartupLimit = 32
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	setDefault(&o.ConnectTimeout, 30*time.Second)
	setDefault(&o.MinBackoff, time.Second)
	setDefault(&o.MaxBackoff, 5*time.Minute)
	if o.Probe.Interval == 0 {
		o.Probe.Interval = 10 * time.Second
	}
	setDefault(&o.Probe.Timeout, 5*time.Second)
	setDefault(&o.Probe.FailureThreshold, 3)
	setDefault(&o.Probe.DropAfter, 10*time.Minute)
}

// setDefault replaces values that are zero or negative.
func setDefault[T time.Duration | int](value *T, def T) {
	if *value <= 0 {
		*value = def
	}
}
