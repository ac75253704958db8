// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"slices"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// same reports whether both claims are of one cluster as far as is known.
func (cl *claim) same(other *claim) bool {
	if cl.uid != "" && other.uid != "" {
		return cl.uid == other.uid
	}
	return cl.agrees(other)
}

// agrees reports whether the profiles say that they are of one cluster.
func (cl *claim) agrees(other *claim) bool {
	return shareKey(cl.keys, other.keys)
}

// standsBy returns the worker that has the cluster of the worker, or will have it,
// if the worker must not connect now.
func (c *Claims) standsBy(w *Worker) *Worker {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.all[w]
	if cl == nil {
		return nil
	}
	if cl.holder != nil && cl.verified == accessKey(w.own.Load()) {
		return cl.holder.worker
	}
	if first := c.firstLocked(cl); first != nil && !first.identified {
		return first.worker
	}
	return nil
}

// holderOf returns the worker that has the cluster of the worker, or will have it, as
// far as is known.
func (c *Claims) holderOf(w *Worker) *Worker {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.all[w]
	if cl == nil {
		return nil
	}
	if cl.holder != nil {
		return cl.holder.worker
	}
	if first := c.firstLocked(cl); first != nil {
		return first.worker
	}
	return nil
}

// verifyAgain makes the worker check which cluster it has.
func (c *Claims) verifyAgain(w *Worker) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.all[w]; cl != nil {
		cl.verified = ""
	}
}

// verifyUnknown is verifyAgain for a worker whose cluster is known only by what its
// profile says.
func (c *Claims) verifyUnknown(w *Worker) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.all[w]; cl != nil && cl.uid == "" {
		cl.verified = ""
	}
}

// Believes reports whether the authors of both profiles are believed that they are of
// one cluster.
func (c *Claims) Believes(a, b *inventory.Profile) bool {
	return c != nil && c.TrustDomain(a) == c.TrustDomain(b) && shareKey(inventory.CorrelationKeys(a), inventory.CorrelationKeys(b))
}

func shareKey(a, b []string) bool {
	return slices.ContainsFunc(a, func(key string) bool { return slices.Contains(b, key) })
}

// firstLocked returns the first claim of the same cluster and trust domain, nil if it
// is this one. Claims that have a first one themselves do not count: they may never
// connect by themselves, and the first one does not know of this one.
func (c *Claims) firstLocked(cl *claim) *claim {
	var first *claim
	for _, key := range cl.keys {
		other := c.beforeLocked(cl, key)
		if other == nil || first != nil && first.before(other) {
			continue
		}
		if !slices.ContainsFunc(other.keys, func(key string) bool { return c.beforeLocked(other, key) != nil }) {
			first = other
		}
	}
	return first
}

// beforeLocked returns the first claim with the key that comes before this one, nil
// if there is none.
func (c *Claims) beforeLocked(cl *claim, key string) *claim {
	var first *claim
	for _, other := range c.byKey[key] {
		if other == cl || other.trust != cl.trust || !other.before(cl) || !other.same(cl) {
			continue
		}
		if !other.worker.standby {
			return other
		}
		if first == nil {
			first = other
		}
	}
	return first
}

// before reports whether the worker comes before the other one. Those that engage
// nothing come last.
func (cl *claim) before(other *claim) bool {
	if cl.worker.standby != other.worker.standby {
		return other.worker.standby
	}
	return cl.order < other.order
}

// claim notes which cluster has responded to the worker with a version of its
// profile, and returns the worker that has it, nil if it is this one. The error is
// that the worker uses another profile, which has led to another cluster.
func (c *Claims) claim(w *Worker, profile *inventory.Profile, uid string) (*Worker, error) {
	if c == nil {
		return nil, nil
	}
	access := accessKey(profile) // before the lock, which all workers use
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.all[w]
	if cl == nil {
		return nil, nil // it is being stopped
	}
	if source := cl.using; source != nil && cl.uid != "" && uid != "" && cl.uid != uid {
		c.setHolderLocked(source, nil)
		source.worker.wake()
		return nil, fmt.Errorf("the profile %s leads to another cluster: its UID is %s, not %s", inventory.KeyOf(profile), uid, cl.uid)
	}
	cl.access = access
	if cl.using != nil { // the profile is another one's
		cl.access = accessKey(w.own.Load())
	}
	if !cl.identified || cl.uid != uid {
		cl.identified = true
		c.setUIDLocked(cl, uid)
		c.verifyDuplicatesLocked(cl)
		for _, key := range cl.keys {
			c.wakeLocked(c.byKey[key], cl)
		}
	}
	var later []*claim
	holder := c.holderLocked(cl, func(other *claim) { later = append(later, other) })
	c.setHolderLocked(cl, holder)
	if holder != nil {
		cl.verified = cl.access // its own does not work, or it would be in use
		return holder.worker, nil
	}
	if w.standby {
		return nil, nil
	}
	for _, other := range later {
		c.setHolderLocked(other, cl)
		other.verified = other.access
		other.worker.giveWay(w)
	}
	if cl.engaging == nil {
		cl.engaging = make(chan struct{})
	}
	if cl.since.IsZero() {
		cl.since = w.Clock.Now()
	}
	return nil, nil
}

// holderLocked returns the claim of the worker that keeps the same cluster. It calls
// the function for those that have to give it up.
func (c *Claims) holderLocked(cl *claim, giveUp func(*claim)) *claim {
	lists := [][]*claim{c.byUID[cl.uid]}
	for _, key := range cl.keys {
		lists = append(lists, c.byKey[key])
	}
	var later []*claim
	for _, list := range lists {
		for _, other := range list {
			switch {
			case other == cl || !other.identified || other.holder != nil || !other.same(cl):
			case other.keepsFrom(cl):
				return other
			default:
				later = append(later, other)
			}
		}
	}
	for _, other := range later {
		giveUp(other)
	}
	return nil
}

// keepsFrom reports whether the worker keeps the cluster that it has, and that the
// other one has found to be its own. The first one keeps it, so that a restart gives
// the same result. But one that has had it for a while is not disturbed: an older
// profile could have been changed to take it. Within a trust domain, it must also be
// engaged.
func (cl *claim) keepsFrom(other *claim) bool {
	switch {
	case cl.worker.standby != other.worker.standby:
		return other.worker.standby
	case cl.trust != other.trust && !cl.since.IsZero() && !other.since.IsZero() && !cl.since.Equal(other.since):
		return cl.since.Before(other.since) // both have one, and it is found to be the same
	case cl.order < other.order:
		return true
	case cl.since.IsZero() || !other.since.IsZero():
		return false
	case cl.trust == other.trust && cl.engaging == nil:
		return false
	}
	w := cl.worker
	return w.Clock.Since(cl.since) > w.ConnectTimeout
}

// released notes that the worker has disengaged its cluster.
func (c *Claims) released(w *Worker) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.all[w]; cl != nil {
		cl.release()
	}
}

func (cl *claim) release() {
	if cl.engaging != nil {
		close(cl.engaging)
		cl.engaging = nil
	}
}

// leaving returns a channel that is closed when another worker has disengaged the
// worker's cluster, nil if none has to.
func (c *Claims) leaving(w *Worker) (other *Worker, ended <-chan struct{}) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.all[w]; cl != nil {
		for _, other := range cl.duplicates {
			if other.engaging != nil {
				return other.worker, other.engaging
			}
		}
	}
	return nil, nil
}
