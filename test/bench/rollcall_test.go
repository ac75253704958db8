// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// rollcall is the multi-cluster manager with a fleet as its provider.
type rollcall struct {
	roll    *roll
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func startRollcall(tb testing.TB, home *mctest.Cluster, o observer) contender {
	tb.Helper()
	r := &rollcall{roll: newRoll()}
	provider, err := fleet.New(fleet.Options{Source: r.roll, Credentials: r.roll})
	if err != nil {
		tb.Fatal(err)
	}
	mgr, err := mcmanager.New(home.Config(), provider, mcmanager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		tb.Fatal(err)
	}
	err = mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}, mcbuilder.WithPredicates(o.filter())).
		WithOptions(mccontroller.Options{MaxConcurrentReconciles: workers, SkipNameValidation: ptr.To(true)}).
		Complete(mcreconcile.Func(func(_ context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			o.reconcile(object{req.ClusterName.String(), req.Name})
			return ctrl.Result{}, nil
		}))
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			tb.Errorf("the manager failed: %v", err)
		}
	})
	return r
}

func (r *rollcall) join(c *mctest.Cluster)  { r.roll.put(c) }
func (r *rollcall) leave(c *mctest.Cluster) { r.roll.remove(c) }

func (r *rollcall) stop() {
	r.cancel()
	r.running.Wait()
}

// roll is an inventory in memory that knows how to connect, too.
type roll struct {
	events chan func(inventory.Sink)

	mu      sync.Mutex // guards configs
	configs map[inventory.Key]*rest.Config
}

func newRoll() *roll {
	return &roll{events: make(chan func(inventory.Sink)), configs: map[inventory.Key]*rest.Config{}}
}

// Run implements inventory.Source.
func (r *roll) Run(ctx context.Context, sink inventory.Sink) error {
	sink.Synced()
	for {
		select {
		case <-ctx.Done():
			return nil
		case tell := <-r.events:
			tell(sink)
		}
	}
}

// Resolve implements credentials.Method.
func (r *roll) Resolve(_ context.Context, profile *inventory.Profile) (*credentials.Access, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	config, ok := r.configs[inventory.KeyOf(profile)]
	if !ok {
		return nil, fmt.Errorf("no credentials for %s", inventory.ClusterName(profile))
	}
	return credentials.FromRESTConfig(config), nil
}

func (r *roll) put(c *mctest.Cluster) {
	profile := profileOf(c)
	r.mu.Lock()
	r.configs[inventory.KeyOf(profile)] = c.Config()
	r.mu.Unlock()
	r.events <- func(sink inventory.Sink) { sink.Put(profile) }
}

func (r *roll) remove(c *mctest.Cluster) {
	r.events <- func(sink inventory.Sink) { sink.Remove(inventory.KeyOf(profileOf(c))) }
}

func profileOf(c *mctest.Cluster) *inventory.Profile {
	p := &inventory.Profile{}
	p.Namespace, p.Name = "bench", c.Name()
	p.Annotations = map[string]string{inventory.AnnotationClusterName: c.Name()}
	return p
}
