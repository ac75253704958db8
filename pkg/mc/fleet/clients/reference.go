// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
)

// reference is the use of one profile. It is dropped when the profile is removed or
// idle; the next use makes another one. Clients.mu guards all fields but the first
// three.
type reference struct {
	clients   *Clients
	key       inventory.Key
	switching sync.Mutex // held while the connection is switched, before Clients.mu

	accessKey   string           // of the last version of the profile with another access
	connection  *connection      // nil until connected
	client      client.WithWatch // nil until the resources have been discovered
	connecting  task
	discovering task
	changed     time.Time   // when the profile was last resolved because its access changed
	retry       *time.Timer // of connecting while there is a connection
	refused     backoff     // between attempts because of refused credentials

	requests int // under way
	lastUsed time.Time
	idle     *time.Timer
	dropped  bool
}

// accessKey changes when the profile is to be resolved again.
func accessKey(profile *inventory.Profile) string {
	return string(profile.UID) + " " + inventory.Fingerprint(profile)
}

// use returns the reference to a profile. The lock is held.
func (c *Clients) use(key inventory.Key) (*reference, error) {
	if err := c.lookup(key); err != nil {
		return nil, err
	}
	r := c.references[key]
	if r == nil {
		r = &reference{clients: c, key: key}
		c.references[key] = r
		if c.options.IdleTimeout > 0 {
			r.idle = time.AfterFunc(c.options.IdleTimeout, r.checkIdle)
		}
	}
	r.lastUsed = time.Now()
	return r, nil
}

// acquire returns the reference to a profile and its connection, which is in use until
// release is called.
func (c *Clients) acquire(ctx context.Context, key inventory.Key) (*reference, *connection, error) {
	for {
		c.mu.Lock()
		r, err := c.use(key)
		if err != nil {
			c.mu.Unlock()
			return nil, nil, err
		}
		if r.connection != nil {
			r.requests++
			conn := r.connection
			c.mu.Unlock()
			return r, conn, nil
		}
		a, err := r.connecting.join(r.connect)
		c.mu.Unlock()
		if err == nil {
			err = a.wait(ctx)
		}
		if err != nil && !errors.Is(err, errSuperseded) {
			return nil, nil, nameProfile(key, err)
		}
	}
}

// release ends the use that acquire began.
func (r *reference) release() {
	r.clients.mu.Lock()
	defer r.clients.mu.Unlock()
	r.requests--
	r.lastUsed = time.Now()
}

// connect starts to resolve the latest version of the profile. The lock is held.
func (r *reference) connect() {
	c := r.clients
	profile := c.profiles[r.key]
	r.accessKey = accessKey(profile)
	if r.retry != nil {
		r.retry.Stop()
	}
	a := r.connecting.begin(c.ctx)
	c.running.Go(func() {
		next, err := c.resolve(a.ctx, profile)
		if err != nil && a.ctx.Err() != nil {
			err = a.cause()
		}
		a.end(r.connected(a, next, err))
	})
}

// connected replaces the connection by the next one, if the attempt is the current one.
// After an error the connection stays.
func (r *reference) connected(a *attempt, next *connection, err error) error {
	r.switching.Lock()
	defer r.switching.Unlock()
	c := r.clients
	c.mu.Lock()
	old, isCurrent := r.connection, r.connecting.current == a
	c.mu.Unlock()
	if !isCurrent {
		next.close()
		return errSuperseded
	}
	connection := old
	if err == nil {
		connection, err = old.switchTo(next)
	}

	c.mu.Lock()
	dropped := r.dropped
	if !dropped && old == nil && connection != nil {
		connected.Inc()
	}
	if !dropped {
		r.connection = connection
	}
	if isCurrent = r.connecting.current == a; isCurrent {
		r.connecting.finish(err)
		if err != nil && old != nil {
			r.connectAfter(r.connecting.backoff.delay)
		}
	}
	retryAfter := r.connecting.backoff.delay
	c.mu.Unlock()

	logger := log.FromContext(c.ctx).WithValues("profile", r.key)
	switch {
	case dropped:
		connection.close()
		return errSuperseded
	case !isCurrent:
		return errSuperseded
	case err != nil && old != nil:
		logger.Info("Cannot use the changed access, keeping the current connection", "error", err.Error(), "retryAfter", retryAfter.String())
	case err != nil: // callers return it
	case old == nil:
		logger.V(1).Info("Connected cluster", "server", identity.Redact(connection.access.Server()))
	case connection != old:
		logger.Info("Switched cluster connection", "server", identity.Redact(connection.access.Server()))
	}
	return err
}

// connectAfter connects after the delay, unless it does so before. A connected cluster
// cannot wait for the next use: an open watch sends no request. The lock is held.
func (r *reference) connectAfter(delay time.Duration) {
	if r.retry != nil {
		r.retry.Stop()
	}
	r.retry = time.AfterFunc(delay, func() {
		r.clients.mu.Lock()
		defer r.clients.mu.Unlock()
		if !r.dropped {
			r.changed = time.Now()
			r.connect()
		}
	})
}

// accessChanged resolves the profile again: if it is connected, now, but not more often
// than once in minBackoff, otherwise at the next use. The lock is held.
func (r *reference) accessChanged() {
	r.accessKey = accessKey(r.clients.profiles[r.key])
	r.connecting.backoff, r.discovering.backoff, r.refused = backoff{}, backoff{}, backoff{}
	wait := minBackoff - time.Since(r.changed)
	switch {
	case r.connection == nil && r.connecting.current == nil: // the next use connects
	case r.connection != nil && wait > 0:
		r.connectAfter(wait)
	default:
		r.changed = time.Now()
		r.connect()
	}
}

// credentialsRefused resolves the profile again, in case its credentials have changed.
func (r *reference) credentialsRefused() {
	r.clients.mu.Lock()
	defer r.clients.mu.Unlock()
	if r.dropped || r.connecting.current != nil || r.connecting.backoff.active() || r.refused.active() {
		return
	}
	r.refused.extend()
	r.connect()
}

// discover starts to make the client and to discover the cluster's resources. The lock
// is held.
func (r *reference) discover() {
	c := r.clients
	a := r.discovering.begin(c.ctx)
	c.running.Go(func() {
		made, err := c.newClient(a.ctx, r.key)
		if err != nil && a.ctx.Err() != nil {
			err = a.cause()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.discovering.current != a {
			a.end(errSuperseded)
			return
		}
		r.discovering.finish(err)
		r.client = made
		a.end(err)
	})
}

// checkIdle drops the reference if nothing has used it for IdleTimeout.
func (r *reference) checkIdle() {
	c := r.clients
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.dropped {
		return
	}
	left := c.options.IdleTimeout
	if r.requests == 0 && r.connecting.current == nil && r.discovering.current == nil {
		left -= time.Since(r.lastUsed)
	}
	if left > 0 {
		r.idle.Reset(left)
		return
	}
	r.drop()
}

// drop disconnects the cluster. The lock is held.
func (r *reference) drop() {
	delete(r.clients.references, r.key)
	r.dropped = true
	r.connecting.supersede()
	r.discovering.supersede()
	for _, timer := range []*time.Timer{r.retry, r.idle} {
		if timer != nil {
			timer.Stop()
		}
	}
	if r.connection != nil {
		connected.Dec()
		r.clients.running.Go(r.connection.close)
	}
}
