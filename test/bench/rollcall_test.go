// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
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

	mu     sync.Mutex     // guards joined
	joined map[string]int // how often each server has joined
}

// profile returns the server's current profile. Its name differs each time that
// the server joins: a fleet delays a name that comes and goes often.
func (r *rollcall) profile(c member) *inventory.Profile {
	r.mu.Lock()
	defer r.mu.Unlock()
	return inmemory.Profile(fmt.Sprintf("%s.%d", c.Name(), r.joined[c.Name()]), c.Name())
}

func startRollcall(tb testing.TB, home member, o observer) contender {
	tb.Helper()
	r := &rollcall{Inventory: inmemory.New(), joined: map[string]int{}}
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
			server, _, _ := strings.Cut(req.ClusterName.String(), ".")
			o.reconcile(object{server, req.Name})
			return ctrl.Result{}, nil
		}))
	if err != nil {
		tb.Fatal(err)
	}
	r.stopManager = mctest.StartManager(tb, mgr)
	return r
}

func (r *rollcall) join(c member) {
	r.mu.Lock()
	r.joined[c.Name()]++
	r.mu.Unlock()
	r.Connect(c.Name(), c.Config())
	r.Put(r.profile(c))
}

func (r *rollcall) leave(c member) { r.Delete(r.profile(c)) }
func (r *rollcall) stop()          { r.stopManager() }
