// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// roll is the fleet's inventory.Sink: it starts and stops the keepers of
// profiles. It is used from one goroutine at a time.
type roll struct {
	ctx   context.Context
	fleet *Fleet
	aware multicluster.Aware

	entries map[inventory.Key]*entry
	// claims has the profiles that come to a name. The first has the keeper: it
	// came first, or was the next when another went. The others are in the order
	// of inventory.CompareClaims.
	claims  map[multicluster.ClusterName][]*entry
	keeping sync.WaitGroup
}

type entry struct {
	name    multicluster.ClusterName
	profile *inventory.Profile
	keeper  *keeper // nil while another profile has the name
	since   time.Time
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
	if e != nil && e.name != name {
		r.Remove(key)
		e = nil
	}
	if e != nil {
		e.profile = profile
		if e.keeper != nil {
			e.keeper.put(profile)
		} else {
			r.sortClaims(name)
		}
		return
	}
	e = &entry{name: name, profile: profile, since: r.fleet.options.Connection.Clock.Now()}
	r.entries[key] = e
	r.claims[name] = append(r.claims[name], e)
	if first := r.claims[name][0]; first != e {
		log.FromContext(r.ctx).Error(nil, "Two profiles come to the same cluster name, the later one waits until the other has gone",
			"cluster", name, "profile", key, "other", inventory.KeyOf(first.profile))
		r.sortClaims(name)
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
	claims := slices.DeleteFunc(r.claims[e.name], func(other *entry) bool { return other == e })
	r.claims[e.name] = claims
	if len(claims) == 0 {
		delete(r.claims, e.name)
	}
	r.fleet.showClaim(key, nil)
	r.showClaims(e.name)
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
	for key := range r.entries {
		r.fleet.showClaim(key, nil)
	}
}

// sortClaims has those that wait for a name in the order in which they get it.
func (r *roll) sortClaims(name multicluster.ClusterName) {
	slices.SortFunc(r.claims[name][1:], func(a, b *entry) int { return inventory.CompareClaims(a.profile, b.profile) })
	r.showClaims(name)
}

// showClaims makes the status show who waits for the name, and who has it.
func (r *roll) showClaims(name multicluster.ClusterName) {
	for i, e := range r.claims[name] {
		var claim *ClusterStatus
		if i > 0 {
			claim = &ClusterStatus{
				Name: name, Profile: inventory.KeyOf(e.profile), State: Pending, Reason: WaitingForName, Since: e.since,
				LastError: fmt.Sprintf("waits for profile %s to go, which has the same cluster name", inventory.KeyOf(r.claims[name][0].profile)),
			}
			claim.describe(e.profile)
		}
		r.fleet.showClaim(inventory.KeyOf(e.profile), claim)
	}
}
