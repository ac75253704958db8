// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

const (
	// seedsVariable is how many seeds to run, one after the other.
	seedsVariable = "ROLLCALL_SEEDS"
	// seedVariable is the first seed.
	seedVariable = "ROLLCALL_SEED"

	witnesses = 2
)

// TestMatrix has all pairs of features in effect at the same time, with each
// seed.
func TestMatrix(t *testing.T) {
	seeds := number(t, seedsVariable, 1)
	first := number(t, seedVariable, uint64(time.Now().UnixMilli()))
	for seed := first; seed < first+seeds; seed++ {
		covered := map[pair]bool{}
		for i, plan := range newPlan(rand.New(rand.NewPCG(seed, 0))) {
			passed := t.Run(fmt.Sprintf("%d fleet %d", seed, i), func(t *testing.T) {
				r := &run{t: t, random: rand.New(rand.NewPCG(seed, uint64(i)+1)), plan: plan, covered: covered}
				if err := r.run(); err != nil {
					t.Errorf("%s=%d, fleet %d:\n%s%v", seedVariable, seed, i, r, err)
				}
			})
			if !passed {
				return
			}
		}
		for p := range allPairs() {
			if !covered[p] {
				t.Errorf("seed %d: features %v were not in effect at the same time", seed, p)
			}
		}
	}
}

func number(t *testing.T, variable string, fallback uint64) uint64 {
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// run is what happens to the clusters of one fleet.
type run struct {
	t       *testing.T
	random  *rand.Rand
	plan    fleetPlan
	covered map[pair]bool // pairs that were in effect at the same time
	*env
}

// String returns the features of each cluster.
func (r *run) String() string {
	var b strings.Builder
	for i := range busy {
		fmt.Fprintf(&b, "  cluster-%d:", i)
		for round := range r.plan {
			fmt.Fprintf(&b, " %s;", features[r.plan[round][i]].name)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (r *run) run() error {
	f := mctest.NewFleet(r.t, busy+witnesses)
	var err error
	if r.env, err = newEnv(r.t); err != nil {
		return err
	}
	for _, c := range f.Clusters() {
		if err := c.Create(widgets()); err != nil {
			return err
		}
		r.members = append(r.members, r.newMember(c, rand.New(rand.NewPCG(r.random.Uint64(), 0))))
	}
	if err := r.each(r.members, (*member).checkUnharmed); err != nil {
		return fmt.Errorf("at the start: %w", err)
	}
	for round, chosen := range r.plan {
		ends := make([]func() error, busy)
		err := r.each(r.members[:busy], func(m *member) (err error) {
			i := m.index()
			time.Sleep(time.Duration(m.random.IntN(100)) * time.Millisecond)
			defer r.logSlow(time.Now(), m, features[chosen[i]].name)
			ends[i], err = features[chosen[i]].begin(m)
			return wrap(err, "%s", features[chosen[i]].name)
		})
		err = errors.Join(err, wrap(r.each(r.witnesses(), (*member).checkUnharmed), "beside that"))
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for i, a := range chosen {
			for _, b := range chosen[i+1:] {
				r.covered[pairOf(a, b)] = true
			}
			if round == rounds-1 {
				r.covered[pairOf(a, shutdown)] = true
			}
		}
		if round == rounds-1 {
			break
		}
		err = r.each(r.members[:busy], func(m *member) error {
			i := m.index()
			defer r.logSlow(time.Now(), m, "the end of "+features[chosen[i]].name)
			return wrap(errors.Join(ends[i](), m.checkUnharmed()), "after %s", features[chosen[i]].name)
		})
		err = errors.Join(err, r.each(r.members, (*member).checkIndexes), r.each(r.witnesses(), (*member).checkUnharmed))
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	r.stop()
	return wrap(r.checkNothingLeft(), "after the shutdown")
}

// logSlow logs what took more than a few seconds.
func (r *run) logSlow(start time.Time, m *member, what string) {
	if took := time.Since(start); took > 5*time.Second {
		r.t.Logf("%s: %s took %v", m.name, what, took.Round(time.Millisecond))
	}
}

// each calls a function for each member concurrently.
func (r *run) each(members []*member, do func(*member) error) error {
	errs := make([]error, len(members))
	var running sync.WaitGroup
	for i, m := range members {
		running.Go(func() { errs[i] = wrap(do(m), "%s", m.name) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// wrap returns the error with a text before it, or nil.
func wrap(err error, text string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(text+": %w", append(args, err)...)
}
