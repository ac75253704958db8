// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// recorder records reconciles and engagements.
type recorder struct {
	block bool // each reconcile until its context ends

	mu      sync.Mutex     // guards what follows
	count   map[string]int // of reconciles, by cluster/name of the object
	running int
	engaged map[multicluster.ClusterName]int
}

func newRecorder() *recorder {
	return &recorder{count: map[string]int{}, engaged: map[multicluster.ClusterName]int{}}
}

// watchConfigMaps adds a controller that reads each ConfigMap and records it,
// and records engagements.
func (r *recorder) watchConfigMaps(t *testing.T, mgr mcmanager.Manager) {
	t.Helper()
	if err := mgr.Add(r); err != nil {
		t.Fatal(err)
	}
	err := mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		WithOptions(mccontroller.Options{MaxConcurrentReconciles: 4}).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
			cl, err := mgr.GetCluster(ctx, req.ClusterName)
			if err != nil {
				return reconcile.Result{}, err
			}
			if err := cl.GetClient().Get(ctx, req.NamespacedName, &corev1.ConfigMap{}); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			return r.Reconcile(ctx, req)
		}))
	if err != nil {
		t.Fatal(err)
	}
}

func (r *recorder) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	r.mu.Lock()
	r.count[req.ClusterName.String()+"/"+req.Name]++
	r.running++
	r.mu.Unlock()
	if r.block {
		<-ctx.Done()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	return reconcile.Result{}, nil
}

func (r *recorder) Engage(_ context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engaged[name]++
	return nil
}

func (r *recorder) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// reconciles counts the reconciles by cluster/name of the object.
func (r *recorder) reconciles() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.count)
}

// reconciled reports whether an object has been reconciled.
func (r *recorder) reconciled(name multicluster.ClusterName, object string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[name.String()+"/"+object] > 0
}

// busy counts the reconciles that have not returned.
func (r *recorder) busy() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// engagements counts how often a cluster has been engaged.
func (r *recorder) engagements(name multicluster.ClusterName) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.engaged[name]
}
