// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Claims has which worker has which cluster, so that a cluster with several profiles
// is engaged once. The first worker of a cluster has it until its profile is removed.
// Workers of other profiles of that cluster are its duplicates: they check that their
// profile leads to the same cluster, and keep no connection.
//
// Clusters are compared by the UID of the namespace kube-system, and by what their
// profiles say (inventory.CorrelationKeys) where that cannot be read. Only profiles of
// one trust domain are believed before their cluster has responded, and only their
// access is used in the place of another's.
//
// The zero value of the other fields is usable. A nil Claims compares nothing. Its
// methods may be called concurrently.
type Claims struct {
	// TrustDomain is equal for profiles whose authors may act for each other.
	TrustDomain func(*inventory.Profile) string

	mu    sync.Mutex // guards what follows
	all   map[*Worker]*claim
	byUID map[string][]*claim // of clusters that have responded, in the order of arrival
	byKey map[string][]*claim // of profiles, in the order of arrival
	added int
}

// claim is what is known of a worker's cluster.
type claim struct {
	worker *Worker
	order  int
	trust  string
	keys   []string // of the profile

	identified bool   // the cluster has responded
	access     string // accessKey of the profile then
	uid        string // of the cluster, "" if it cannot be read
	// holder has the same cluster, which was verified with the access of that key. It
	// is nil for the worker that has the cluster.
	holder     *claim
	verified   string
	duplicates []*claim // whose holder this is
	// engaging is closed when the worker has disengaged the cluster. It is nil if it
	// does not engage it.
	engaging chan struct{}
	since    time.Time // when the worker got the cluster, zero if it has not
	using    *claim    // whose profile the worker connects with, nil for its own
	user     *claim    // the claim that is using this one
}

// add adds a worker, whose place is behind those that exist.
func (c *Claims) add(w *Worker) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all, c.byUID, c.byKey = map[*Worker]*claim{}, map[string][]*claim{}, map[string][]*claim{}
	}
	c.added++
	cl := &claim{worker: w, order: c.added}
	c.all[w] = cl
	c.setKeysLocked(cl)
}

// update takes over what the worker's latest profile says.
func (c *Claims) update(w *Worker) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.all[w]
	if cl == nil {
		return
	}
	profile := w.own.Load()
	if !slices.Equal(cl.keys, inventory.CorrelationKeys(profile)) || cl.trust != c.TrustDomain(profile) {
		c.clearKeysLocked(cl)
		c.setKeysLocked(cl)
		cl.verified = ""
	}
	if cl.identified && cl.since.IsZero() && cl.access != accessKey(profile) {
		c.setHolderLocked(cl, nil)
		c.setUIDLocked(cl, "")
		cl.identified = false // it may lead to another cluster now
	}
	if first := c.firstLocked(cl); first != nil && !first.identified {
		first.worker.wake() // it may try this profile now
	}
	if user := cl.user; user != nil {
		if cl.trust != user.trust || !cl.same(user) {
			c.useLocked(user, nil) // it is another cluster's now
		}
		user.worker.profileInUseChanged()
	}
}

func (c *Claims) setKeysLocked(cl *claim) {
	profile := cl.worker.own.Load()
	cl.trust, cl.keys = c.TrustDomain(profile), inventory.CorrelationKeys(profile)
	for _, key := range cl.keys {
		c.byKey[key] = insert(c.byKey[key], cl)
		c.wakeLocked(c.byKey[key], cl)
	}
}

func (c *Claims) clearKeysLocked(cl *claim) {
	for _, key := range cl.keys {
		without(c.byKey, key, cl)
		c.wakeLocked(c.byKey[key], cl)
	}
	cl.keys = nil
}

// remove removes a worker. Its duplicates look for another one.
func (c *Claims) remove(w *Worker) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.all[w]
	if cl == nil {
		return
	}
	delete(c.all, w)
	c.clearKeysLocked(cl)
	c.setUIDLocked(cl, "")
	c.setHolderLocked(cl, nil)
	for _, other := range slices.Clone(cl.duplicates) {
		c.setHolderLocked(other, nil)
		other.worker.wake()
	}
	cl.release()
	c.useLocked(cl, nil)
	if user := cl.user; user != nil {
		c.useLocked(user, nil)
		user.worker.profileInUseChanged()
	}
}

func (c *Claims) setHolderLocked(cl, holder *claim) {
	if cl.holder == holder {
		return
	}
	if old := cl.holder; old != nil {
		old.duplicates = slices.DeleteFunc(old.duplicates, func(other *claim) bool { return other == cl })
	}
	cl.holder, cl.verified = holder, ""
	if holder != nil {
		cl.since = time.Time{}
		holder.duplicates = append(holder.duplicates, cl)
		for _, other := range slices.Clone(cl.duplicates) {
			c.setHolderLocked(other, holder)
			other.worker.wake()
		}
	}
}

// verifyDuplicatesLocked makes the duplicates check their clusters again.
func (c *Claims) verifyDuplicatesLocked(cl *claim) {
	for _, other := range slices.Clone(cl.duplicates) {
		if other.same(cl) {
			other.verified = ""
		} else {
			c.setHolderLocked(other, nil)
		}
		other.worker.wake()
	}
}

// wakeLocked makes the workers look at their claims again.
func (c *Claims) wakeLocked(claims []*claim, except *claim) {
	for _, cl := range claims {
		if cl != except {
			cl.worker.wake()
		}
	}
}

func (c *Claims) setUIDLocked(cl *claim, uid string) {
	if cl.uid == uid {
		return
	}
	if cl.uid != "" {
		cl.since = time.Time{}
	}
	if cl.uid != "" {
		without(c.byUID, cl.uid, cl)
	}
	cl.uid = uid
	if uid != "" {
		c.byUID[uid] = insert(c.byUID[uid], cl)
	}
}

// insert keeps the order of arrival.
func insert(claims []*claim, cl *claim) []*claim {
	i, _ := slices.BinarySearchFunc(claims, cl, func(a, b *claim) int { return cmp.Compare(a.order, b.order) })
	return slices.Insert(claims, i, cl)
}

func without(index map[string][]*claim, key string, cl *claim) {
	rest := slices.DeleteFunc(index[key], func(other *claim) bool { return other == cl })
	if len(rest) == 0 {
		delete(index, key)
		return
	}
	index[key] = rest
}
