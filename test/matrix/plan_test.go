// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math/rand/v2"
	"testing"
)

const (
	// busy is the number of clusters of a fleet that something happens to.
	busy = 6
	// rounds is the number of features that each of them gets in turn. During the
	// last one, the fleet is shut down.
	rounds = 3
)

// shutdown is the number after the last feature.
var shutdown = len(features)

// pair is two features that are in effect at the same time, in order.
type pair [2]int

func pairOf(a, b int) pair { return pair{min(a, b), max(a, b)} }

// allPairs returns each pair of features, also of one with itself in two clusters,
// and of each with the shutdown.
func allPairs() map[pair]bool {
	all := map[pair]bool{}
	for a := range features {
		for b := a; b <= shutdown; b++ {
			all[pairOf(a, b)] = true
		}
	}
	return all
}

// fleetPlan has the feature of each cluster in each round.
type fleetPlan [rounds][busy]int

// newPlan returns plans of fleets that have all pairs.
func newPlan(random *rand.Rand) []fleetPlan {
	var plans []fleetPlan
	for missing := allPairs(); len(missing) > 0; {
		var plan fleetPlan
		for round := range plan {
			var chosen []int
			if round == rounds-1 {
				chosen = append(chosen, shutdown)
			}
			for cluster := range plan[round] {
				feature := choose(random, missing, chosen)
				for _, other := range chosen {
					delete(missing, pairOf(feature, other))
				}
				chosen = append(chosen, feature)
				plan[round][cluster] = feature
			}
			random.Shuffle(busy, func(i, j int) { plan[round][i], plan[round][j] = plan[round][j], plan[round][i] })
		}
		plans = append(plans, plan)
	}
	return plans
}

// choose returns a feature that has most missing pairs with the chosen ones or,
// if none has any, with all others.
func choose(random *rand.Rand, missing map[pair]bool, chosen []int) int {
	best, most := 0, -1
	for _, feature := range random.Perm(len(features)) {
		beside, left := 0, 0
		for other := range shutdown + 1 {
			if missing[pairOf(feature, other)] {
				left++
			}
		}
		for _, other := range chosen {
			if missing[pairOf(feature, other)] {
				beside += 100
			}
		}
		if beside+left > most {
			best, most = feature, beside+left
		}
	}
	return best
}

func TestPlanHasAllPairs(t *testing.T) {
	for seed := range uint64(100) {
		missing := allPairs()
		plans := newPlan(rand.New(rand.NewPCG(seed, 0)))
		for _, plan := range plans {
			for round, chosen := range plan {
				for i, a := range chosen {
					for _, b := range chosen[i+1:] {
						delete(missing, pairOf(a, b))
					}
					if round == rounds-1 {
						delete(missing, pairOf(a, shutdown))
					}
				}
			}
		}
		if len(missing) > 0 || len(plans) > 4 {
			t.Errorf("seed %d: %d pairs are missing in %d fleets: %v", seed, len(missing), len(plans), missing)
		}
	}
}
