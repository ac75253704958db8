// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	"github.com/rollcall-dev/rollcall/test/internal/inmemory"
)

// rollcall is a multi-cluster manager with a fleet as its provider.
type rollcall struct {
	*inmemory.Inventory
	stopManager func()
}

func startRollcall(tb testing.TB, home *mctest.Cluster, o observer) contender {
	tb.Helper()
	r := &rollcall{Inventory: inmemory.New()}
	provider, err := fleet.New(fleet.Options{Source: r, Credentials: r})
	if err != nil {
		tb.Fatal(err)
	}
	mgr, err := mcmanager.New(home.Config(), provider, mctest.ManagerOptions())
	if err != nil {
		tb.Fatal(err)
	}
	err = mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}, mcbuilder.WithPredicates(o.filter())).
		WithOptions(mccontroller.Options{MaxConcurrentReconciles: workers}).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			o.reconcile(object{req.ClusterName.String(), req.Name})
			return ctrl.Result{}, nil
		}))
	if err != nil {
		tb.Fatal(err)
	}
	r.stopManager = mctest.StartManager(tb, mgr)
	return r
}

func (r *rollcall) join(c *mctest.Cluster)  { r.Add(c) }
func (r *rollcall) leave(c *mctest.Cluster) { r.Remove(c) }
func (r *rollcall) stop()                   { r.stopManager() }
