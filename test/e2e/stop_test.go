// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// slowToStop is a cluster that takes a while to stop.
type slowToStop struct{ cluster.Cluster }

func (s slowToStop) Start(ctx context.Context) error {
	err := s.Cluster.Start(ctx)
	time.Sleep(200 * time.Millisecond)
	return err
}

func TestStopInEachState(t *testing.T) {
	type setting struct {
		*env
		cluster, other *mctest.Cluster
	}
	add := func(s setting) { s.Add(s.cluster) }
	addWith := func(fault mctest.Fault) func(setting) {
		return func(s setting) {
			s.cluster.Fault(fault)
			s.Add(s.cluster)
		}
	}
	for _, tc := range []struct {
		state  fleet.State
		change func(*fleet.Options)
		reach  func(setting)
	}{
		{fleet.Pending, func(o *fleet.Options) {
			o.Connection.StartupLimit, o.Connection.Clock = 1, clocktesting.NewFakeClock(time.Now()) // by which no startup slot times out
		}, func(s setting) {
			s.other.Fault(mctest.Hang)
			s.Add(s.other) // has the only slot
			s.awaitState(s.other, fleet.Connecting, "")
			s.Add(s.cluster)
		}},
		{fleet.Connecting, nil, addWith(mctest.Hang)},
		{fleet.Backoff, func(o *fleet.Options) { o.Connection.MinBackoff = time.Hour }, addWith(mctest.Refuse)},
		{fleet.Syncing, func(o *fleet.Options) {
			o.Connection.NewCluster = func(ctx context.Context, _ *inventory.Profile, _ *rest.Config, _ ...cluster.Option) (cluster.Cluster, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, add},
		{fleet.Ready, nil, add},
		{fleet.Degraded, nil, func(s setting) {
			s.Add(s.cluster)
			s.checkReconciles(s.cluster)
			s.cluster.Fault(mctest.Hang)
		}},
		{fleet.Leaving, func(o *fleet.Options) {
			o.Connection.NewCluster = func(_ context.Context, _ *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
				cl, err := cluster.New(config, opts...)
				return slowToStop{cl}, err
			}
		}, func(s setting) {
			s.Add(s.cluster)
			s.checkReconciles(s.cluster)
			s.Remove(s.cluster)
		}},
	} {
		t.Run(string(tc.state), func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 2)
			e := newEnv(t, func(o *fleet.Options) {
				o.Connection.ConnectTimeout = mctest.Timeout
				if tc.change != nil {
					tc.change(o)
				}
			})
			tc.reach(setting{e, f.Cluster(0), f.Cluster(1)})
			e.awaitState(f.Cluster(0), tc.state, "")
			e.stopAndCheck(f.Clusters()...)
		})
	}
}
