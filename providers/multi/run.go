// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multi

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// run is one run of a provider. It is the provider's Aware, which engages clusters under
// their prefixed names.
type run struct {
	inner *inner
	outer multicluster.Aware
	ctx   context.Context // of the provider's Start

	mu      sync.Mutex // guards what follows
	ended   bool
	cancels map[*context.CancelFunc]struct{} // of ctx and of engagements
}

func newRun(ctx context.Context, i *inner, outer multicluster.Aware) *run {
	r := &run{inner: i, outer: outer}
	ctx, cancel := context.WithCancel(ctx)
	r.ctx, r.cancels = ctx, map[*context.CancelFunc]struct{}{&cancel: {}}
	context.AfterFunc(ctx, r.end)
	return r
}

// end ends the contexts of the run and of all clusters engaged in it. They have ended
// when it returns: another provider may engage clusters of the same names then.
func (r *run) end() {
	r.mu.Lock()
	r.ended = true
	cancels := r.cancels
	r.cancels = nil
	r.mu.Unlock()
	for cancel := range cancels {
		(*cancel)()
	}
}

// Engage implements multicluster.Aware. The context is derived from that of the
// provider, so it carries the Engagement.
func (r *run) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	name = r.inner.of.prefix(r.inner.name, name)
	ctx, cancel := context.WithCancel(ctx)
	if !r.add(&cancel) {
		cancel()
		return fmt.Errorf("cluster %q: provider %q was removed, has failed or stops", name, r.inner.name)
	}
	context.AfterFunc(ctx, func() { r.remove(&cancel) })
	if err := r.outer.Engage(ctx, name, cl); err != nil {
		cancel()
		return err
	}
	return nil
}

func (r *run) add(cancel *context.CancelFunc) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.cancels[cancel] = struct{}{}
	}
	return !r.ended
}

func (r *run) remove(cancel *context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.cancels, cancel)
}

// aware returns the Aware for the provider. It is a manager where the outer one is: a
// provider may use that, as it uses the manager that it belongs to.
func (r *run) aware() multicluster.Aware {
	if mgr, ok := r.outer.(mcmanager.Manager); ok {
		return &engagingManager{Manager: mgr, aware: r}
	}
	return r
}

// engagingManager is a manager that engages clusters with an Aware.
type engagingManager struct {
	mcmanager.Manager
	aware multicluster.Aware
}

func (m *engagingManager) Engage(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster) error {
	return m.aware.Engage(ctx, name, cl)
}
