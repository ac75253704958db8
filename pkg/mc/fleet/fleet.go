// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Fleet keeps one live cluster for each profile. All methods may be called
// from any goroutine.
type Fleet struct {
	options Options
	gate    *gate
	synced  atomic.Bool // the inventory has been read once

	// keepers has the *keeper of each multicluster.ClusterName. Reading it takes
	// no lock.
	keepers sync.Map

	mu      sync.Mutex // guards what follows; never held across I/O
	started bool
	indexes []index
	indexed map[*member]struct{} // clusters that have the indexes
	// claims has the profiles that wait for others of the same cluster name.
	claims map[inventory.Key]*ClusterStatus
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
		options: options,
		gate:    newGate(options.Connection.StartupLimit, options.Connection.Clock),
		indexed: map[*member]struct{}{},
		claims:  map[inventory.Key]*ClusterStatus{},
	}, nil
}

// Start keeps the fleet until the context ends, and returns when every cluster
// has left. It returns an error only if it is called more than once: whatever
// happens to the source or to a cluster is dealt with.
func (f *Fleet) Start(ctx context.Context, aware multicluster.Aware) error {
	f.mu.Lock()
	started := f.started
	f.started = true
	f.mu.Unlock()
	if started {
		return multicluster.TerminalError(errors.New("fleet: started more than once; the manager starts it by itself"))
	}

	defer running.add(f)()
	roll := newRoll(ctx, f, aware)
	defer roll.wait()
	for _, accesses := range []any{f.options.Credentials, f.options.Connector} {
		if notifier, ok := accesses.(credentials.ChangeNotifier); ok {
			notifier.NotifyChange(ctx, f.credentialsChanged)
		}
	}
	return inventory.Restart(f.options.Source).Run(ctx, roll)
}

// credentialsChanged has all profiles resolved again.
func (f *Fleet) credentialsChanged() {
	f.keepers.Range(func(_, k any) bool {
		k.(*keeper).credentialsChanged()
		return true
	})
}

// Get returns the engaged cluster of that name. It never blocks. The error is
// multicluster.ErrClusterNotFound, and multicluster.ErrClusterNotReady too
// where the cluster is on the roll but not engaged, or may be on the roll, as
// the inventory has not been read yet.
func (f *Fleet) Get(_ context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	synced := f.synced.Load() // first: the cluster may be put, and all be read, meanwhile
	k, ok := f.keepers.Load(clusterName)
	if !ok && !synced {
		return nil, multicluster.NotReadyError(clusterName, unread)
	}
	if !ok {
		return nil, multicluster.NotFoundError(clusterName)
	}
	keeper := k.(*keeper)
	if m := keeper.engaged.Load(); m != nil {
		return m, nil
	}
	return nil, multicluster.NotReadyError(clusterName, keeper.status.Load().String())
}

// unread is what is known of clusters before the inventory has been read.
const unread = "the inventory has not been read yet"

// ClusterNames returns the names of the engaged clusters, in no order.
func (f *Fleet) ClusterNames() []multicluster.ClusterName {
	var names []multicluster.ClusterName
	f.keepers.Range(func(name, k any) bool {
		if k.(*keeper).engaged.Load() != nil {
			names = append(names, name.(multicluster.ClusterName))
		}
		return true
	})
	return names
}

// Status returns the state of every cluster on the roll, in no order. A profile
// that comes to the name of another one's cluster follows that, as a cluster
// that is Pending and whose LastError says who has the name.
func (f *Fleet) Status() []ClusterStatus {
	var all []ClusterStatus
	f.keepers.Range(func(_, k any) bool {
		all = append(all, k.(*keeper).report())
		return true
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, claim := range f.claims {
		all = append(all, *claim)
	}
	return all
}

// showClaim makes the status show a profile that waits for a name, or no more.
func (f *Fleet) showClaim(profile inventory.Key, claim *ClusterStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if claim == nil {
		delete(f.claims, profile)
		return
	}
	f.claims[profile] = claim
}

// String names the fleet for logs.
func (f *Fleet) String() string {
	return fmt.Sprintf("fleet of %v", f.options.Source)
}
