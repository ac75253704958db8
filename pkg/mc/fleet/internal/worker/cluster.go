// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/admission"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Cluster is an engaged cluster as reconcilers get it. It stays the same while its
// connection is switched.
type Cluster struct {
	cluster.Cluster

	name       multicluster.ClusterName
	worker     *Worker
	connection Connection
	profile    atomic.Pointer[inventory.Profile]
	starts     *admission.Starts
	engagement *multicluster.Engagement

	ctx    context.Context // ends when the cluster is disengaged
	cancel context.CancelFunc

	mu    sync.Mutex // guards tasks against Go after the end
	tasks sync.WaitGroup

	// The worker's goroutine owns what follows.
	identity identity.Identity
	verified bool // the identity's UID was read over the current connection
	switches int  // how often the connection was switched
	started  bool
	stopped  chan struct{} // closed when Start has returned
	err      error         // why it returned, set before stopped is closed
}

// newCluster returns a cluster that has the slot under which it was connected, and
// the share of that slot for the goroutine that engages it.
func (w *Worker) newCluster(profile *inventory.Profile, conn Connection, id identity.Identity, slot *admission.Slot) (*Cluster, *admission.Share) {
	c := &Cluster{name: w.name, worker: w, connection: conn, identity: id, verified: id.UID != "", stopped: make(chan struct{})}
	c.profile.Store(profile)
	c.ctx, c.cancel = context.WithCancel(w.ctx)
	starts, engaging := admission.NewStarts(c.ctx, w.Limiter, slot, w.ConnectTimeout, func(ctx context.Context) error {
		_, err := w.probe(ctx, conn)
		if identity.IsBusy(err) {
			return nil
		}
		return err
	})
	c.starts = starts
	c.engagement = multicluster.NewEngagement(startLimiter{starts})
	return c, engaging
}

// startLimiter is a multicluster.StartLimiter.
type startLimiter struct{ starts *admission.Starts }

func (l startLimiter) RequestStart() multicluster.StartRequest { return l.starts.RequestStart() }

// Name returns the cluster's name.
func (c *Cluster) Name() multicluster.ClusterName { return c.name }

// Context ends when the cluster is disengaged.
func (c *Cluster) Context() context.Context { return c.ctx }

// Connection returns the connection to the cluster.
func (c *Cluster) Connection() Connection { return c.connection }

// Backlog returns the number of requests for the cluster in the queues of
// controllers.
func (c *Cluster) Backlog() int { return c.engagement.Backlog() }

// Profile returns the current profile. It must not be changed.
func (c *Cluster) Profile() *inventory.Profile { return c.profile.Load() }

// Profiles returns the current profile, then those that can take its place. They must
// not be changed.
func (c *Cluster) Profiles() []*inventory.Profile {
	return append([]*inventory.Profile{c.Profile()}, c.worker.Alternates()...)
}

// setProfile replaces the profile and notifies observers of the cluster.
func (c *Cluster) setProfile(profile *inventory.Profile) {
	if c.profile.Swap(profile) != profile {
		c.engagement.NotifyChange()
	}
}

// GetConfig returns a copy of the configuration for the current endpoint and
// credentials.
func (c *Cluster) GetConfig() *rest.Config {
	if config := c.connection.Config(); config != nil {
		return config
	}
	return c.Cluster.GetConfig()
}

// Go runs the function in a goroutine that must return when Context ends; the
// worker waits for it. It reports false, and runs nothing, if the cluster is being
// disengaged.
func (c *Cluster) Go(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.tasks.Go(f)
	return true
}

// switchTo replaces the connection by one to the same cluster. It reports false if
// that is not possible or the identity cannot be verified.
func (c *Cluster) switchTo(next Connection, id identity.Identity) bool {
	if !id.Matches(c.identity) || !c.connection.Switch(next) {
		return false
	}
	c.switches++
	c.verified = false
	c.learn(id.UID)
	c.identity.ClusterID = cmp.Or(id.ClusterID, c.identity.ClusterID)
	return true
}

// learn notes the UID that was read over the current connection. One that cannot be
// read now, "", is compared when it can be read again.
func (c *Cluster) learn(uid string) {
	if uid != "" {
		c.identity.UID, c.verified = uid, true
	}
}

// confirm reports whether the next connection is equal to the current one and leads
// to the same cluster. One that cannot be switched need not show its identity.
func (c *Cluster) confirm(next Connection, id identity.Identity) bool {
	if fingerprint := next.Fingerprint(); fingerprint == "" || fingerprint != c.connection.Fingerprint() {
		return false
	}
	if !id.Matches(c.identity) && (c.connection.Config() != nil || id.Conflicts(c.identity)) {
		return false
	}
	c.learn(id.UID)
	return c.adoptClusterID(id.ClusterID)
}

// adoptClusterID takes over the cluster ID of a profile whose access has not
// changed. It reports false if that shows that the cluster is not the same.
func (c *Cluster) adoptClusterID(id string) bool {
	if id == "" {
		return true // it may be missing for a short time
	}
	if !c.verified && c.identity.ClusterID != "" && c.identity.ClusterID != id {
		return false
	}
	c.identity.ClusterID = id
	return true
}

// start runs the cluster until its context ends. If it ends earlier, the function is
// called.
func (c *Cluster) start(ended func(error)) {
	c.started = true
	go func() {
		err := c.Start(c.ctx)
		c.err = errCacheStopped
		if err != nil {
			c.err = fmt.Errorf("%w: %w", errCacheStopped, err)
		}
		close(c.stopped)
		ended(c.err)
	}()
}

// abort makes all requests fail that are under way or made later.
func (c *Cluster) abort() {
	c.connection.Close()
	c.connection.Release()
}

// wait returns a channel that is closed when nothing of the cluster runs any more.
// Its context must have ended.
func (c *Cluster) wait() <-chan struct{} {
	c.mu.Lock()   // a task may be starting
	c.mu.Unlock() //nolint:staticcheck // empty on purpose
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.starts.Close()
		c.tasks.Wait()
		if c.started {
			<-c.stopped
		}
		<-c.engagement.Idle()
	}()
	return ended
}
