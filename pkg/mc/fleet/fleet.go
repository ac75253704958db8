// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/fieldindex"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Fleet connects the cluster of each profile of an inventory, and engages it. All
// methods may be called concurrently.
type Fleet struct {
	options Options
	scheme  *runtime.Scheme // the manager's, nil if there is none; set by Start
	indexes fieldindex.Set
	synced  atomic.Bool // the source has listed the inventory

	// workers has the *worker.Worker of each multicluster.ClusterName.
	workers sync.Map

	mu         sync.Mutex // guards what follows; not held across I/O
	started    bool
	byProfile  map[inventory.Key]*worker.Worker
	duplicates map[inventory.Key]ClusterStatus  // profiles that wait for a cluster name
	standby    map[inventory.Key]*worker.Worker // of profiles whose cluster has a worker of the same name
}

var (
	_ multicluster.Provider         = &Fleet{}
	_ multicluster.ProviderRunnable = &Fleet{}
)

// New returns a fleet. It does nothing before Start.
func New(options Options) (*Fleet, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	return &Fleet{
		options:    options,
		byProfile:  map[inventory.Key]*worker.Worker{},
		duplicates: map[inventory.Key]ClusterStatus{},
		standby:    map[inventory.Key]*worker.Worker{},
	}, nil
}

// Source returns Options.Source, for programs that list or publish an inventory without
// engaging its clusters. It must not be run while the fleet runs.
func (f *Fleet) Source() inventory.Source { return f.options.Source }

// Credentials returns Options.Credentials, nil if the fleet has a Connector. It connects
// to the clusters of the profiles that Source has sent.
func (f *Fleet) Credentials() credentials.Method { return f.options.Credentials }

// Start runs the fleet until the context ends, and returns when all clusters are
// disengaged. The only error is that it was called more than once: errors of the
// source and of clusters are handled and shown in the status.
func (f *Fleet) Start(ctx context.Context, aware multicluster.Aware) error {
	f.mu.Lock()
	started := f.started
	f.started = true
	f.mu.Unlock()
	if started {
		return multicluster.TerminalError(errors.New("fleet: Start was called more than once: the manager calls it"))
	}
	f.scheme = multicluster.SchemeFrom(ctx)

	defer running.add(f)()
	s := newSink(ctx, f, f.workerOptions(aware))
	defer s.wait()
	for _, method := range []any{f.options.Credentials, f.options.Connector} {
		if notifier, ok := method.(credentials.ChangeNotifier); ok {
			notifier.NotifyChange(ctx, f.recheckAll)
		}
	}
	return inventory.Restart(f.options.Source).Run(ctx, s)
}

func (f *Fleet) workerOptions(aware multicluster.Aware) *worker.Options {
	o := &f.options.Connection
	var claims *worker.Claims
	if !f.options.KeepDuplicates {
		claims = &worker.Claims{TrustDomain: f.options.TrustDomain}
	}
	return &worker.Options{
		Backend: &backend{fleet: f},
		Aware:   aware,
		Limiter: admission.NewLimiter(o.StartupLimit, o.Clock),
		Clock:   o.Clock,

		ConnectTimeout: o.ConnectTimeout,
		MinBackoff:     o.MinBackoff,
		MaxBackoff:     o.MaxBackoff,
		Throttles:      worker.NewThrottles(o.MinBackoff, o.MaxBackoff),
		Stopped:        &worker.StoppedWorkers{},
		Claims:         claims,

		ProbeInterval:         o.Probe.Interval,
		ProbeTimeout:          o.Probe.Timeout,
		ProbeFailureThreshold: o.Probe.FailureThreshold,
		DropAfter:             o.Probe.DropAfter,

		Transition: countTransition,
	}
}

// eachWorker calls the function for each worker, in no order.
func (f *Fleet) eachWorker(do func(*worker.Worker)) {
	f.workers.Range(func(_, w any) bool {
		do(w.(*worker.Worker))
		return true
	})
	f.mu.Lock()
	standby := slices.Collect(maps.Values(f.standby))
	f.mu.Unlock()
	for _, w := range standby {
		do(w)
	}
}

// recheckAll resolves all profiles again.
func (f *Fleet) recheckAll() { f.eachWorker((*worker.Worker).Recheck) }

// Recheck resolves the profile again at once, as a change of its access providers
// would. It is for callers that know that its credentials have changed. It does
// nothing if the fleet has no such profile.
func (f *Fleet) Recheck(profile inventory.Key) {
	f.mu.Lock()
	w := f.byProfile[profile]
	f.mu.Unlock()
	if w != nil {
		w.Recheck()
	}
}

// Get returns the engaged cluster of that name. It never blocks. The error is
// multicluster.ErrClusterNotFound, and also multicluster.ErrClusterNotReady if the
// cluster is in the inventory but not engaged, or the inventory has not been listed
// yet.
func (f *Fleet) Get(_ context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	synced := f.synced.Load() // before workers, which Synced follows
	found, ok := f.workers.Load(clusterName)
	if !ok && !synced {
		return nil, multicluster.NotReadyError(clusterName, notSynced)
	}
	if !ok {
		return nil, multicluster.NotFoundError(clusterName)
	}
	w := found.(*worker.Worker)
	if cl := w.Engaged(); cl != nil {
		return cl, nil
	}
	return nil, multicluster.NotReadyError(clusterName, newStatus(w.Status()).String())
}

// notSynced is why clusters are not found before the source has listed them.
const notSynced = "the inventory has not been listed yet"

// ProfileFrom returns the current profile of a cluster that a fleet engaged, and
// whether a fleet engaged it. The profile is shared: it must not be changed.
func ProfileFrom(cl cluster.Cluster) (*inventory.Profile, bool) {
	c, ok := cl.(*worker.Cluster)
	if !ok {
		return nil, false
	}
	return c.Profile(), true
}

// ProfilesFrom returns the current profiles of a cluster that a fleet engaged: first
// the one in use, as ProfileFrom, then those that can take its place. It returns nil if
// no fleet engaged the cluster. The profiles are shared: they must not be changed.
func ProfilesFrom(cl cluster.Cluster) []*inventory.Profile {
	c, ok := cl.(*worker.Cluster)
	if !ok {
		return nil
	}
	return c.Profiles()
}

// ClusterNames returns the names of the engaged clusters, in no order.
func (f *Fleet) ClusterNames() []multicluster.ClusterName {
	var names []multicluster.ClusterName
	f.eachWorker(func(w *worker.Worker) {
		if cl := w.Engaged(); cl != nil {
			names = append(names, cl.Name())
		}
	})
	return names
}

// Status returns the status of all clusters in the inventory, in no order. A
// profile whose cluster name is in use by another profile is Pending with the reason
// DuplicateName.
func (f *Fleet) Status() []ClusterStatus {
	var all []ClusterStatus
	f.eachWorker(func(w *worker.Worker) { all = append(all, currentStatus(w)) })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, duplicate := range f.duplicates {
		all = append(all, duplicate)
	}
	return all
}

// String returns the name of the fleet for logs.
func (f *Fleet) String() string {
	return fmt.Sprintf("fleet of %v", f.options.Source)
}
