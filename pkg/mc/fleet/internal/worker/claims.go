// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	if first := c.firstLocked(cl); first != nil && !first.identified {
		first.worker.wake() // it may try this profile now
	}
	if cl.user != nil {
		cl.user.worker.profileInUseChanged()
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

func (c *Claims) useLocked(cl, source *claim) {
	if cl.using != nil {
		cl.using.user = nil
	}
	cl.using = source
	if source == nil {
		cl.worker.source.Store(nil)
		return
	}
	source.user = cl
	cl.worker.source.Store(source.worker)
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
		if cl.using != nil { // its own does not work, or would be in use
			profile = w.own.Load()
		}
		cl.verified = accessKey(profile)
		return holder.worker, nil
	}
	if w.standby {
		return nil, nil
	}
	for _, other := range later {
		c.setHolderLocked(other, cl)
		other.verified = accessKey(other.worker.own.Load())
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

// alternates returns the workers whose profiles may be used in the place of the
// worker's own, first those that were verified, each in the order of arrival.
func (c *Claims) alternates(w *Worker) []*Worker {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.all[w]
	if cl == nil || cl.holder != nil {
		return nil
	}
	follows := cl.holder != nil || c.firstLocked(cl) != nil // the first one tries the others
	var found []*claim
	seen := map[*claim]bool{cl: true}
	add := func(others []*claim) {
		for _, other := range others {
			unclear := other.holder == nil && !other.identified && !follows
			if !seen[other] && other.trust == cl.trust && other.same(cl) && (other.holder == cl || unclear) {
				seen[other] = true
				found = append(found, other)
			}
		}
	}
	if cl.uid != "" {
		add(c.byUID[cl.uid])
	}
	for _, key := range cl.keys {
		add(c.byKey[key])
	}
	slices.SortStableFunc(found, func(a, b *claim) int {
		if (a.holder == nil) != (b.holder == nil) {
			if a.holder == nil {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.order, b.order)
	})
	workers := make([]*Worker, len(found))
	for i, other := range found {
		workers[i] = other.worker
	}
	return workers
}

// use notes that the worker connects with the profile of the other one, nil for its
// own. It reports false if that has been removed, or is in use by another one.
func (c *Claims) use(w, source *Worker) bool {
	if c == nil {
		return source == nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cl, other := c.all[w], c.all[source]
	if cl == nil || source != nil && (other == nil || other.user != nil && other.user != cl) {
		return false
	}
	c.useLocked(cl, other)
	return true
}

// usedBy returns the worker that connects with the worker's profile, nil if it is
// none.
func (c *Claims) usedBy(w *Worker) *Worker {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.all[w]; cl != nil && cl.user != nil {
		return cl.user.worker
	}
	return nil
}

// conflict describes profiles that say that they are of the worker's cluster, while
// other clusters respond there.
func (c *Claims) conflict(w *Worker) string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cl := c.all[w]
	if cl == nil || cl.uid == "" {
		return ""
	}
	var found []string
	more := 0
	for i, key := range cl.keys {
		for _, other := range c.byKey[key] {
			switch {
			case other == cl || other.uid == "" || other.uid == cl.uid || shareKey(cl.keys[:i], other.keys): // or found already
			case len(found) < maxConflicts:
				found = append(found, fmt.Sprintf("%s (UID %s)", inventory.KeyOf(other.worker.own.Load()), other.uid))
			default:
				more++
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	if more > 0 {
		found = append(found, fmt.Sprintf("%d more", more))
	}
	return "profiles of other clusters have the same member ID or ClusterID: " + strings.Join(found, ", ")
}

// maxConflicts is how many profiles an error lists.
const maxConflicts = 3
