// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Events returns an event source for one controller, which reconciles again what
// refers to a profile:
//
//	builder.WatchesRawSource(members.Events(handler.EnqueueRequestsFromMapFunc(referrers)))
//
// The handler gets a generic event with the profile when a profile is added or
// removed, or its access changes. Events come after Client knows of the change, unlike
// those of a watch of ClusterProfiles. Profiles that are known when the controller
// starts have no event, and several changes of a profile may be one event. The handler
// may block; then events are delayed, but not those of other sources.
func (c *Clients) Events(handler handler.EventHandler) source.Source {
	return &eventSource{
		clients: c, handler: handler,
		pending: map[inventory.Key]*inventory.Profile{}, wake: make(chan struct{}, 1),
	}
}

type eventSource struct {
	clients *Clients
	handler handler.EventHandler
	pending map[inventory.Key]*inventory.Profile // Clients.mu guards it
	wake    chan struct{}
}

// Start implements source.Source.
func (s *eventSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	c := s.clients
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.sources[s] = true
	c.running.Go(func() {
		s.run(ctx, queue)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.sources, s)
	})
	return nil
}

// run sends events until the context ends or the Clients stop.
func (s *eventSource) run(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.clients.stopping:
			return
		case <-s.wake:
		}
		s.clients.mu.Lock()
		pending := s.pending
		s.pending = map[inventory.Key]*inventory.Profile{}
		s.clients.mu.Unlock()
		for _, profile := range pending {
			if ctx.Err() != nil {
				return
			}
			s.handler.Generic(ctx, event.GenericEvent{Object: profile}, queue)
		}
	}
}

// String returns the name of the source for logs.
func (s *eventSource) String() string { return fmt.Sprintf("profiles of %v", s.clients) }

// changed lets the event sources send an event of a profile. The lock is held.
func (c *Clients) changed(profile *inventory.Profile) {
	for s := range c.sources {
		s.pending[inventory.KeyOf(profile)] = profile
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}
