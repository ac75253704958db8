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

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/indexkey"
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
}

type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

func (i index) key() indexkey.Key {
	return indexkey.Of(i.object, i.field)
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
	return &Fleet{options: options, gate: newGate(options.StartupLimit, options.Clock), indexed: map[*member]struct{}{}}, nil
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
// where the cluster is on the roll but not engaged.
func (f *Fleet) Get(_ context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	k, ok := f.keepers.Load(clusterName)
	if !ok {
		return nil, multicluster.NotFoundError(clusterName)
	}
	keeper := k.(*keeper)
	if m := keeper.engaged.Load(); m != nil {
		return m, nil
	}
	return nil, multicluster.NotReadyError(clusterName, keeper.status.Load().String())
}

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

// Status returns the state of every cluster on the roll, in no order.
func (f *Fleet) Status() []ClusterStatus {
	var all []ClusterStatus
	f.keepers.Range(func(_, k any) bool {
		all = append(all, k.(*keeper).report())
		return true
	})
	return all
}

// IndexField adds the index to the caches of all clusters, those there now, at
// the same time, and those to come. It must be called before the informer of
// the kind is started, best before the manager. The errors of single clusters
// are joined; a cluster that leaves meanwhile has none. The index counts as
// added nevertheless. It is an error to index a field twice.
func (f *Fleet) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	added := index{object: obj, field: field, extract: extractValue}
	present, err := f.addIndex(added)
	if err != nil {
		return err
	}
	errs := make([]error, len(present))
	var group errgroup.Group
	for i, m := range present {
		group.Go(func() error {
			if err := m.index(ctx, added); m.ctx.Err() == nil {
				errs[i] = err
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// addIndex notes the index and returns the clusters to give it to. All others
// get it from addIndexes.
func (f *Fleet) addIndex(added index) ([]*member, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.indexes, func(other index) bool { return other.key() == added.key() }) {
		return nil, fmt.Errorf("field %q of %T is indexed already", added.field, added.object)
	}
	f.indexes = append(f.indexes, added)
	return slices.Collect(maps.Keys(f.indexed)), nil
}

// addIndexes gives a cluster that is being connected the indexes so far. Those
// that follow are added to it by IndexField.
func (f *Fleet) addIndexes(ctx context.Context, m *member) error {
	f.mu.Lock()
	f.indexed[m] = struct{}{}
	indexes := append([]index(nil), f.indexes...)
	f.mu.Unlock()
	for _, i := range indexes {
		if err := m.index(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) forgetIndexes(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.indexed, m)
}

// roll is the fleet's inventory.Sink: it starts and stops the keepers of
// profiles. It is used from one goroutine at a time.
type roll struct {
	ctx   context.Context
	fleet *Fleet
	aware multicluster.Aware

	entries map[inventory.Key]*entry
	// claims has the profiles that come to a name, in order of arrival. The
	// first has the keeper.
	claims  map[multicluster.ClusterName][]*entry
	keeping sync.WaitGroup
}

type entry struct {
	name    multicluster.ClusterName
	profile *inventory.Profile
	keeper  *keeper // nil while another profile has the name
}

func newRoll(ctx context.Context, f *Fleet, aware multicluster.Aware) *roll {
	return &roll{
		ctx: ctx, fleet: f, aware: aware,
		entries: map[inventory.Key]*entry{},
		claims:  map[multicluster.ClusterName][]*entry{},
	}
}

// Put implements inventory.Sink.
func (r *roll) Put(profile *inventory.Profile) {
	key := inventory.KeyOf(profile)
	if !r.fleet.options.IsReady(profile) {
		r.Remove(key)
		return
	}
	name := r.fleet.options.ClusterName(profile)
	if name.Empty() {
		log.FromContext(r.ctx).Error(nil, "Profile has no cluster name, ignoring it", "profile", key)
		r.Remove(key)
		return
	}
	e := r.entries[key]
	if e != nil && (e.name != name || e.profile.UID != profile.UID) {
		r.Remove(key)
		e = nil
	}
	if e != nil {
		e.profile = profile
		if e.keeper != nil {
			e.keeper.put(profile)
		}
		return
	}
	e = &entry{name: name, profile: profile}
	r.entries[key] = e
	r.claims[name] = append(r.claims[name], e)
	if first := r.claims[name][0]; first != e {
		log.FromContext(r.ctx).Error(nil, "Two profiles come to the same cluster name, the later one waits until the other has gone",
			"cluster", name, "profile", key, "other", inventory.KeyOf(first.profile))
		return
	}
	r.keep(e)
}

// Remove implements inventory.Sink.
func (r *roll) Remove(key inventory.Key) {
	e := r.entries[key]
	if e == nil {
		return
	}
	delete(r.entries, key)
	claims := r.claims[e.name]
	for i := range claims {
		if claims[i] == e {
			claims = append(claims[:i:i], claims[i+1:]...)
			break
		}
	}
	r.claims[e.name] = claims
	if len(claims) == 0 {
		delete(r.claims, e.name)
	}
	if e.keeper == nil {
		return
	}
	e.keeper.leave()
	if len(claims) > 0 {
		r.keep(claims[0])
	}
}

// Synced implements inventory.Sink.
func (r *roll) Synced() {
	r.fleet.synced.Store(true)
	log.FromContext(r.ctx).Info("Inventory has been read", "profiles", len(r.entries))
}

// keep starts a keeper. One that leaves the same name goes first.
func (r *roll) keep(e *entry) {
	k := newKeeper(r.ctx, r.fleet, r.aware, e.name, e.profile)
	if old, ok := r.fleet.keepers.Swap(e.name, k); ok {
		k.predecessor = old.(*keeper)
	}
	e.keeper = k
	r.keeping.Go(func() {
		defer r.fleet.keepers.CompareAndDelete(e.name, k)
		k.run()
	})
}

// wait returns when all keepers have ended.
func (r *roll) wait() {
	r.keeping.Wait()
}

// String names the fleet for logs.
func (f *Fleet) String() string {
	return fmt.Sprintf("fleet of %v", f.options.Source)
}
