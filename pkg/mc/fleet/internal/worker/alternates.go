// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

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
