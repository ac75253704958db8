// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// replace stops the worker and runs one for the profile under another cluster name.
func (e *testEnv) replace(name multicluster.ClusterName, profile *inventory.Profile) {
	e.Stop()
	next := worker.New(context.Background(), e.options, name, profile)
	e.Worker = next
	e.running.Go(func() { next.Run(nil) })
	synctest.Wait()
}

// A cluster that is added under another name is engaged when the engagement under
// the name before has ended.
func TestClusterUnderAnotherName(t *testing.T) {
	for _, tc := range []struct {
		name          string
		before, after *inventory.Profile
		uids          map[string]string // by server
		waits         bool
	}{
		{"the same UID", profile("a"), profile("b"), map[string]string{"a": "1", "b": "1"}, true},
		{"another UID", profile("a"), profile("b"), map[string]string{"a": "1", "b": "2"}, false},
		{"the same endpoint, and identities that cannot be compared", profile("a"), withClusterID(profile("a"), "other"), nil, true},
		{"the same ClusterID", withClusterID(profile("a"), "x"), withClusterID(profile("b"), "x"), nil, true},
		{"another ClusterID", withClusterID(profile("a"), "x"), withClusterID(profile("b"), "y"), nil, false},
		{"the same endpoint", profile("a"), profile("a"), nil, true},
		{"another endpoint", profile("a"), profile("b"), nil, false},
		{"another ClusterID at the same endpoint", withClusterID(profile("a"), "x"), withClusterID(profile("a"), "y"), nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
				env.probe = func(_ context.Context, server string) (string, error) { return tc.uids[server], nil }
				var endWork func()
				env.engage = func(ctx context.Context) error {
					endWork = multicluster.EngagementFrom(ctx).BeginWork()
					return nil
				}
				env.add(t, tc.before)
				endFirst := endWork
				env.replace("us", tc.after)
				if !tc.waits {
					env.is(g, worker.Ready, worker.Engaged, "")
					endFirst()
					endWork()
					return
				}
				env.is(g, worker.Connecting, worker.DuplicateCluster, `is being disengaged under the name "eu"`)
				g.Expect(env.engagements()).To(Equal(1))
				g.Expect(freeSlots(env.options.Limiter)).To(BeNumerically(">=", 1))
				pass(10 * time.Second)
				g.Expect(freeSlots(env.options.Limiter)).To(Equal(2), "it waits without a startup slot")
				endFirst()
				synctest.Wait()
				env.is(g, worker.Ready, worker.Engaged, "")
				g.Expect(env.engagements()).To(Equal(2))
				endWork()
			})
		})
	}
}

// The wait is bounded by the time that disengaging a cluster may take.
func TestWaitForOtherNameEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		unblock := make(chan struct{})
		engaging := make(chan struct{}, 2)
		env.engage = func(context.Context) error {
			engaging <- struct{}{}
			if env.engagements() == 1 {
				<-unblock // whatever the context
			}
			return nil
		}
		env.add(t, profile("a"))
		<-engaging
		env.replace("us", profile("a"))
		env.is(g, worker.Connecting, worker.DuplicateCluster, "under the name")
		pass(connectTimeout)
		env.is(g, worker.Connecting, worker.DuplicateCluster, "under the name")
		pass(5 * time.Second)
		env.is(g, worker.Ready, worker.Engaged, "")
		close(unblock)
	})
}

// A worker that waits ends at once when it is stopped.
func TestStopWhileOtherNameLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, g *WithT, env *testEnv) {
		var endWork func()
		env.engage = func(ctx context.Context) error {
			endWork = multicluster.EngagementFrom(ctx).BeginWork()
			return nil
		}
		env.add(t, profile("a"))
		env.replace("us", profile("a"))
		env.is(g, worker.Connecting, worker.DuplicateCluster, "under the name")
		env.Stop()
		synctest.Wait()
		env.is(g, worker.Leaving, worker.Removed, "")
		g.Expect(env.engagements()).To(Equal(1))
		endWork()
	})
}
