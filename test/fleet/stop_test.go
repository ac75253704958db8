// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

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

// slowToEnd is a cluster that takes a while to end.
type slowToEnd struct{ cluster.Cluster }

func (s slowToEnd) Start(ctx context.Context) error {
	err := s.Cluster.Start(ctx)
	time.Sleep(200 * time.Millisecond)
	return err
}

func TestTheManagerIsStoppedWhileAClusterIs(t *testing.T) {
	type setting struct {
		*stage
		cluster, other *mctest.Cluster
	}
	join := func(s setting) { s.join(s.cluster) }
	joinWith := func(fault mctest.Fault) func(setting) {
		return func(s setting) {
			s.cluster.Fault(fault)
			s.join(s.cluster)
		}
	}
	for _, tc := range []struct {
		state  fleet.State
		change func(*fleet.Options)
		bring  func(setting)
	}{
		{fleet.Pending, func(o *fleet.Options) {
			o.Connection.StartupLimit, o.Connection.Clock = 1, clocktesting.NewFakeClock(time.Now()) // by which nobody is late for a place
		}, func(s setting) {
			s.other.Fault(mctest.Hang)
			s.join(s.other) // has the only place
			s.awaitState(s.other, fleet.Connecting, "")
			s.join(s.cluster)
		}},
		{fleet.Connecting, nil, joinWith(mctest.Hang)},
		{fleet.Backoff, func(o *fleet.Options) { o.Connection.MinBackoff = time.Hour }, joinWith(mctest.Refuse)},
		{fleet.Syncing, func(o *fleet.Options) {
			o.Connection.NewCluster = func(ctx context.Context, _ *inventory.Profile, _ *rest.Config, _ ...cluster.Option) (cluster.Cluster, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, join},
		{fleet.Ready, nil, join},
		{fleet.Degraded, nil, func(s setting) {
			s.join(s.cluster)
			s.beat(s.cluster)
			s.cluster.Fault(mctest.Hang)
		}},
		{fleet.Leaving, func(o *fleet.Options) {
			o.Connection.NewCluster = func(_ context.Context, _ *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
				cl, err := cluster.New(config, opts...)
				return slowToEnd{cl}, err
			}
		}, func(s setting) {
			s.join(s.cluster)
			s.beat(s.cluster)
			s.leave(s.cluster)
		}},
	} {
		t.Run(string(tc.state), func(t *testing.T) {
			t.Parallel()
			f := mctest.NewFleet(t, 2)
			s := newStage(t, func(o *fleet.Options) {
				o.Connection.ConnectTimeout = patience
				if tc.change != nil {
					tc.change(o)
				}
			})
			tc.bring(setting{s, f.Cluster(0), f.Cluster(1)})
			s.awaitState(f.Cluster(0), tc.state, "")
			s.nothingIsLeft(f.Clusters()...)
		})
	}
}
