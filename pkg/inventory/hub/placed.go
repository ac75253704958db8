// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// placed is which clusters a decision has at a time: those that its slices
// name, and those that they have named until shortly before.
type placed struct {
	placement *Placement
	grace     time.Duration

	read   bool // the first listing is complete
	silent bool // decisions cannot be read now
	slices map[string]*v1alpha1.PlacementDecision
	decision
	// lingering has since when a cluster has not been named any more.
	lingering map[inventory.Key]time.Time
	logged    string
}

func newPlaced(placement *Placement) *placed {
	return &placed{
		placement: placement,
		grace:     cmp.Or(placement.Grace, DefaultGrace),
		slices:    map[string]*v1alpha1.PlacementDecision{},
		lingering: map[inventory.Key]time.Time{},
	}
}

// has says whether the cluster is to be told of.
func (p *placed) has(key inventory.Key) bool {
	if p.clusters[key] {
		return true
	}
	_, lingers := p.lingering[key]
	return lingers
}

// answered notes whether the hub has answered a request for decisions. What
// happened while it did not is not known, so that all waiting starts again.
func (p *placed) answered(ok bool, now time.Time) {
	if ok && p.silent {
		for key := range p.lingering {
			p.lingering[key] = now
		}
	}
	p.silent = !ok
}

// decide reads the slices anew. It returns the clusters that join.
func (p *placed) decide(now time.Time) (joined []inventory.Key) {
	before := p.decision
	p.decision = decisionOf(p.slices)
	for key := range before.clusters {
		if !p.clusters[key] {
			p.lingering[key] = now
		}
	}
	for key := range p.clusters {
		if !before.clusters[key] {
			if _, lingers := p.lingering[key]; !lingers {
				joined = append(joined, key)
			}
			delete(p.lingering, key)
		}
	}
	return joined
}

// expire returns the clusters that leave now.
func (p *placed) expire(now time.Time) (left []inventory.Key) {
	if p.silent {
		return nil
	}
	for key, since := range p.lingering {
		if !now.Before(since.Add(p.patience())) {
			delete(p.lingering, key)
			left = append(left, key)
		}
	}
	return left
}

// next returns when a cluster leaves if nothing happens before.
func (p *placed) next() (at time.Time, ok bool) {
	if p.silent {
		return time.Time{}, false
	}
	for _, since := range p.lingering {
		if due := since.Add(p.patience()); !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	return at, ok
}

func (p *placed) patience() time.Duration {
	if p.rewritten {
		return rewriteFactor * p.grace
	}
	return p.grace
}

// logState says whether there is a decision, when that has changed.
func (p *placed) logState(log logr.Logger) {
	state := "Placement decision found"
	if len(p.slices) == 0 {
		state = "There is no placement decision, waiting for one"
	}
	if state != p.logged {
		p.logged = state
		log.Info(state, "placement", p.placement.String())
	}
}
