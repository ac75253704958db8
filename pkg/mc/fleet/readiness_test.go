// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
)

func TestReadyCheck(t *testing.T) {
	for _, tc := range []struct {
		ready, waiting, leaving int
		share                   float64
		passes                  bool
	}{
		{share: 1, passes: true},
		{leaving: 3, share: 1, passes: true},
		{ready: 3, leaving: 3, share: 1, passes: true},
		{ready: 2, waiting: 1, share: 1},
		{waiting: 1, share: 0, passes: true},
		{ready: 55, waiting: 45, share: 0.55, passes: true},
		{ready: 54, waiting: 46, share: 0.55},
	} {
		t.Run(fmt.Sprintf("%d ready, %d waiting, %d leaving, share %v", tc.ready, tc.waiting, tc.leaving, tc.share), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				unblock := make(chan struct{})
				env := start(t, nil, withConnector(connectorFunc(func(_ context.Context, p *inventory.Profile) (*fleet.Connection, error) {
					switch {
					case strings.HasPrefix(p.Name, "waiting"):
						return nil, errors.New("not now")
					case strings.HasPrefix(p.Name, "leaving"):
						return &fleet.Connection{Cluster: stuckCluster{unblock: unblock}}, nil
					}
					return &fleet.Connection{Cluster: fakeCluster{}}, nil
				})), func(o *fleet.Options) { o.Connection.MinBackoff, o.Connection.MaxBackoff = time.Hour, time.Hour })
				for prefix, n := range map[string]int{"ready": tc.ready, "waiting": tc.waiting, "leaving": tc.leaving} {
					for i := range n {
						env.source.put(profile(fmt.Sprint(prefix, i), "x"))
					}
				}
				synctest.Wait()
				for i := range tc.leaving {
					env.source.remove(fmt.Sprint("leaving", i))
				}
				synctest.Wait()
				err := env.ReadyCheck(tc.share)(nil)
				g.Expect(err == nil).To(Equal(tc.passes), "%v", err)
				close(unblock)
				env.stop()
			})
		})
	}
}

func TestLeaderReadyCheck(t *testing.T) {
	g := NewWithT(t)
	listed := make(chan struct{})
	f, err := fleet.New(fleet.Options{
		Source: inventory.SourceFunc(func(ctx context.Context, sink inventory.Sink) error {
			select {
			case <-listed:
				sink.Synced()
				<-ctx.Done()
			case <-ctx.Done():
			}
			return nil
		}),
		Connector: connectorFunc(nil),
	})
	g.Expect(err).NotTo(HaveOccurred())
	never, elected := make(chan struct{}), make(chan struct{})
	close(elected)
	standby, leader := f.LeaderReadyCheck(0, never), f.LeaderReadyCheck(0, elected)
	g.Expect(standby(nil)).To(Succeed())
	g.Expect(leader(nil)).To(MatchError(ContainSubstring("not been listed")), "the leader must have listed")

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Start(ctx, nil) }()
	g.Eventually(func() error { return standby(nil) }).Should(MatchError(ContainSubstring("not been listed")))
	close(listed)
	g.Eventually(func() error { return standby(nil) }).Should(Succeed())
	g.Expect(leader(nil)).To(Succeed())
	cancel()
	g.Expect(<-done).To(Succeed())
}
