// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// ProfileFrom returns the current profile of a cluster that a fleet engaged,
// and whether it is one. The profile is shared: it must not be changed.
func ProfileFrom(cl cluster.Cluster) (*inventory.Profile, bool) {
	m, ok := cl.(*member)
	if !ok {
		return nil, false
	}
	return m.profile.Load(), true
}

// member is the cluster that reconcilers are given. It stays the same while
// what is under it is exchanged.
type member struct {
	cluster.Cluster

	fleet *Fleet
	name  multicluster.ClusterName

	profile   atomic.Pointer[inventory.Profile]
	config    atomic.Pointer[rest.Config]
	transport *swapTransport
	listings  *listings
	// engagement is what the cluster shares with those that it is engaged with.
	engagement *multicluster.Engagement

	// identify asks a cluster that has no transport who it is. May be nil.
	identify func(ctx context.Context, profile *inventory.Profile) (identity, error)

	mu      sync.Mutex     // guards what follows
	turn    *turn          // nil if there is none
	working sync.WaitGroup // what is to end with the cluster

	// The keeper's goroutine owns what follows.
	way       *approach
	clusterID string          // that the profile gives the cluster behind way
	ctx       context.Context // ends when the cluster leaves
	cancel    context.CancelFunc
	listed    int // of the listings, before the cluster was engaged
	started   bool
	stopped   chan struct{} // closed when the cluster's Start has returned
	err       error         // says so, once stopped is closed
}

// newMember returns a member that has a place in the gate.
func newMember(k *keeper, profile *inventory.Profile, a *approach, p *place) *member {
	m := &member{
		fleet:     k.fleet,
		name:      k.name,
		transport: newSwapTransport(a.target, k.fleet.options.Connection.Clock),
		listings:  newListings(),
		way:       a,
		clusterID: a.identity.clusterID,
		stopped:   make(chan struct{}),
	}
	m.profile.Store(profile)
	m.config.Store(a.config)
	m.engagement = multicluster.NewEngagement(m)
	m.ctx, m.cancel = context.WithCancel(multicluster.WithEngagement(k.ctx, m.engagement))
	if a.target == nil {
		m.identify = a.identify
	}
	m.firstTurn(p)
	return m
}

// setProfile makes the profile the current one. It may be so already.
func (m *member) setProfile(profile *inventory.Profile) {
	if m.profile.Swap(profile) != profile {
		m.engagement.NotifyChange()
	}
}

// confirm tells whether the way is the one in use and leads to the same cluster.
func (m *member) confirm(way *approach) bool {
	known := identity{uid: m.way.identity.uid, clusterID: m.clusterID}
	switch {
	case !way.equals(m.way):
		return false
	case way.identity.same(known):
	case way.cluster == nil || way.identity.differs(known):
		return false
	}
	return m.adopt(way.identity.clusterID)
}

// exchange makes the way the one by which the cluster is reached, if that can
// be exchanged and the same cluster is there, and tells whether it did.
func (m *member) exchange(way *approach) bool {
	if way.target == nil || !way.identity.same(identity{uid: m.way.identity.uid, clusterID: m.clusterID}) {
		return false
	}
	old := m.way
	m.way, m.clusterID = way, way.identity.clusterID
	m.config.Store(way.config)
	m.transport.swap(way.target)
	old.release() // drops its connections: watches resume on the new ones
	return true
}

// adopt takes over the ClusterID that a profile gives which leads to the cluster
// as before, and tells whether that may be the same cluster's.
func (m *member) adopt(clusterID string) bool {
	if clusterID == "" {
		return true // it may be back soon
	}
	if m.way.identity.uid == "" && m.clusterID != "" && m.clusterID != clusterID {
		return false
	}
	m.clusterID = clusterID
	return true
}

// GetConfig returns a copy of the configuration that leads to the cluster now.
// It changes with the cluster's endpoint.
func (m *member) GetConfig() *rest.Config {
	config := m.config.Load()
	if config == nil { // the cluster has one of its own
		return m.Cluster.GetConfig()
	}
	return rest.CopyConfig(config)
}

// abort fails what talks to the cluster, now and from now on.
func (m *member) abort() {
	m.transport.close()
	m.way.release()
}

// work runs the function in a goroutine that is waited for when the cluster has
// left, and tells whether it does: it must end with the member's context.
func (m *member) work(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.workLocked(f)
}

func (m *member) workLocked(f func()) bool {
	if m.ctx.Err() != nil {
		return false
	}
	m.working.Go(f)
	return true
}

// end returns a channel that is closed when nothing of the cluster runs any
// more. Its context must have ended.
func (m *member) end() <-chan struct{} {
	m.mu.Lock() // who has it may begin to work still
	if m.turn != nil {
		m.endTurnLocked(m.turn)
	}
	m.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.working.Wait()
		if m.started {
			<-m.stopped
		}
	}()
	return ended
}

// start runs the cluster until its context ends, or it ends by itself, which
// the function is told of.
func (m *member) start(ended func(error)) {
	m.started = true
	go func() {
		err := m.Start(m.ctx)
		m.err = errClusterEnded
		if err != nil {
			m.err = fmt.Errorf("%w: %w", errClusterEnded, err)
		}
		close(m.stopped)
		ended(m.err)
	}()
}
