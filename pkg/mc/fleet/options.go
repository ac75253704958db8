// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
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

// Options say where a fleet's clusters come from and how they are connected.
type Options struct {
	// Source says which clusters there are. Required. The fleet restarts it
	// when it fails.
	Source inventory.Source

	// Credentials turns a profile into a rest.Config. Required unless there is a
	// Connector. One that is a credentials.ChangeNotifier has all profiles
	// resolved again when it says so.
	Credentials credentials.Method

	// Connector, in the place of Credentials, connects clusters that are not
	// built from a rest.Config. RESTOptions, ClusterOptions, ClusterOptionsFor
	// and NewCluster do not apply to these.
	Connector Connector

	// ClusterName names the cluster of a profile. Where several profiles come to
	// the same name, the one that was there first has it until it goes, and the
	// next is the first of inventory.ComparePrecedence.
	// Defaults to inventory.ClusterName: "namespace/name", or the name that the
	// source gave.
	ClusterName func(profile *inventory.Profile) multicluster.ClusterName

	// IsReady says whether the cluster of a profile is to be connected. One
	// that no longer is leaves. Defaults to all.
	IsReady func(profile *inventory.Profile) bool

	// RESTOptions change the rest.Config of each cluster before it is used, in
	// what has to do with requests: UserAgent, Impersonate, QPS and Burst,
	// RateLimiter, ContentConfig, Timeout, WarningHandler, WrapTransport. The
	// config has QPS -1 unless its method says otherwise: the API server's own
	// fairness governs. Connections are the credentials' matter: a change of Host,
	// APIPath, TLSClientConfig, DisableCompression, Transport, Dial or Proxy is an
	// error of the cluster. The functions are called each time that credentials
	// are resolved; all but Impersonate and WrapTransport holds from the first
	// time on while the cluster is engaged.
	RESTOptions []func(config *rest.Config) error

	// ClusterOptions are those of controller-runtime's clusters, for all of them.
	// Before them, each has the Scheme of the manager that runs the fleet.
	// See LeanCache for one that saves memory. One that replaces
	// Cache.NewInformer switches off that first listings count for StartupLimit,
	// and that stopped watches are drained.
	ClusterOptions []cluster.Option

	// ClusterOptionsFor returns the options for the cluster of a profile, which
	// are applied after ClusterOptions. They hold as long as the cluster is
	// engaged, whatever becomes of its profile. It may be called from any
	// goroutine. Defaults to none.
	ClusterOptionsFor func(profile *inventory.Profile) []cluster.Option

	// NewCluster makes the cluster. The config's transport must be used: it is
	// what is exchanged when credentials or endpoints change. Defaults to
	// cluster.New.
	NewCluster func(ctx context.Context, profile *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error)

	// ConnectTimeout bounds one attempt to connect and sync a cluster, without
	// the time in which it waits for a place, and the wait for its goroutines
	// when it leaves. What is called meanwhile (credentials, Connector,
	// NewCluster, an Aware's Engage) has a context that ends then. If it does not
	// return, its place is free for others, but its cluster stays as it is, and
	// Start does not return either: two of one name would be worse. Defaults to
	// 30 s.
	ConnectTimeout time.Duration

	// StartupLimit bounds how many clusters connect, or have controllers list
	// their objects for the first time, at once. A cluster that has not answered
	// within 1 s, or before 2 others have for each place, waits outside of the
	// bound. Defaults to 32. Less than zero means no bound.
	StartupLimit int

	// Probe says how the health of engaged clusters is watched.
	Probe ProbeOptions

	// MinBackoff and MaxBackoff bound the wait after a failed attempt, which
	// doubles each time, with 20 % jitter, and starts over when the profile or
	// credentials change or a cluster has been engaged for longer than
	// MaxBackoff. A change ends the wait, but of more than five in a row each
	// waits twice as long as the one before, between the same bounds. They
	// default to 1 s and 5 min.
	MinBackoff, MaxBackoff time.Duration

	// Clock is what the fleet goes by: the wait after a failure, probes, and all
	// limits above. Clients, caches, the Source and the credentials have their
	// own time. It is for tests, such as with a FakeClock of
	// k8s.io/utils/clock/testing. Defaults to the real one.
	Clock clock.WithTickerAndDelayedExecution
}

// ProbeOptions say how the health of engaged clusters is watched. A probe asks
// for the namespace kube-system. An API server that forbids it, does not have
// it, or has too many requests (429) lives too. No probe is made of a cluster
// that has sent anything since the last one, unless a connection has been
// dropped meanwhile: another cluster may be there now.
type ProbeOptions struct {
	// Interval is the time between probes, with up to 20 % jitter on top.
	// Defaults to 10 s. Less than zero means no probes.
	Interval time.Duration

	// Timeout bounds one probe. Defaults to 5 s.
	Timeout time.Duration

	// FailureThreshold is the number of failures in a row after which a cluster
	// is Degraded: its requests wait in the queues of controllers and take no
	// worker. One success makes it Ready again. Defaults to 3.
	FailureThreshold int

	// DropAfter is how long probes may fail before the cluster is disengaged
	// and connected anew, with backoff. Defaults to 10 min.
	DropAfter time.Duration
}

// probeJitter is the share of the interval by which a probe may come later.
const probeJitter = 0.2

func (o *ProbeOptions) complete() {
	if o.Interval == 0 {
		o.Interval = 10 * time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.FailureThreshold <= 0 {
		o.FailureThreshold = 3
	}
	if o.DropAfter <= 0 {
		o.DropAfter = 10 * time.Minute
	}
}

func (o *Options) complete() error {
	if o.Source == nil {
		return errors.New("fleet: must specify Options.Source")
	}
	if (o.Credentials == nil) == (o.Connector == nil) {
		return errors.New("fleet: must specify either Options.Credentials or Options.Connector")
	}
	if o.ClusterName == nil {
		o.ClusterName = func(profile *inventory.Profile) multicluster.ClusterName {
			return multicluster.ClusterName(inventory.ClusterName(profile))
		}
	}
	if o.IsReady == nil {
		o.IsReady = func(*inventory.Profile) bool { return true }
	}
	if o.NewCluster == nil {
		o.NewCluster = func(_ context.Context, _ *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
			return cluster.New(config, opts...)
		}
	}
	o.Probe.complete()
	if o.StartupLimit == 0 {
		o.StartupLimit = 32
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 30 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.MinBackoff <= 0 {
		o.MinBackoff = time.Second
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = 5 * time.Minute
	}
	return nil
}
