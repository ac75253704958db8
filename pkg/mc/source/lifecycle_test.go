// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/sources"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// TestLifecycleBeforeStart tests that events do not pile up on a stand-by replica.
func TestLifecycleBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var events []string
		src := mcsource.TypedClusterLifecycle(func(_ context.Context, e mcsource.ClusterEvent) []mcreconcile.Request {
			events = append(events, string(e.Type)+" "+e.ClusterName.String())
			return nil
		})
		watcher := src.(sources.ClusterWatcher)
		eu, us := multicluster.NewEngagement(nil), multicluster.NewEngagement(nil)
		watcher.ClusterEngaged(multicluster.WithEngagement(t.Context(), eu), "eu", nil)
		watcher.ClusterEngaged(multicluster.WithEngagement(t.Context(), us), "us", nil)
		for range 100 {
			eu.NotifyChange()
			us.NotifyChange()
		}
		g.Expect(src.Start(t.Context(), &queue[mcreconcile.Request]{})).To(Succeed())
		synctest.Wait()
		g.Expect(events).To(Equal([]string{"Engaged eu", "Engaged us", "Changed eu", "Changed us"}))

		eu.NotifyChange()
		synctest.Wait()
		g.Expect(events).To(HaveLen(5), "a change after delivery is a new event")
	})
}
