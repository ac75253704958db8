// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Causes of errors, for errors.Is.
var (
	// ErrProfileNotFound means that the inventory has no such profile.
	ErrProfileNotFound = errors.New("not found in the inventory")

	// ErrNotSynced means that the inventory has not been listed yet and the profile
	// has not been seen so far: it may exist.
	ErrNotSynced = errors.New("the inventory has not been listed yet")

	// ErrStopped means that the Clients have stopped.
	ErrStopped = errors.New("the clients have stopped")
)

// Options configure Clients.
type Options struct {
	// Source lists the profiles. Required. It is restarted when it fails; the profiles
	// that it has sent before stay.
	Source inventory.Source

	// Credentials turns a profile into a connection. Required. It is called when a
	// cluster is connected; while it is connected, when the access providers of its
	// profile change, when the profile was recreated, and when the cluster refuses the
	// credentials (401). If it is a credentials.ChangeNotifier, it is also called for
	// all connected clusters after each change that it reports. It must return when
	// the context ends, after 30 s.
	Credentials credentials.Method

	// Scheme has the types for clients. Defaults to that of client-go.
	Scheme *runtime.Scheme

	// RESTOptions change the rest.Config of each cluster, in the order given and each
	// time that credentials are resolved. They may change the same fields, with the
	// same defaults, as fleet.ConnectionOptions.RESTOptions. Impersonate and
	// WrapTransport follow the last call; a client keeps everything else.
	RESTOptions []func(config *rest.Config) error

	// IdleTimeout is how long a cluster stays connected after its last use. Defaults
	// to 10 min. Negative means that clusters stay connected.
	IdleTimeout time.Duration
}

// Clients have a client for the cluster of each profile of an inventory. All methods
// may be called concurrently.
type Clients struct {
	options Options

	mu         sync.Mutex      // guards what follows; not held across I/O
	ctx        context.Context // the life of Start, nil before
	synced     bool            // the source has listed the inventory
	stopped    bool
	profiles   map[inventory.Key]*inventory.Profile
	references map[inventory.Key]*reference // those in use
	sources    map[*eventSource]bool        // those that are started

	stopping chan struct{}  // closed by stop
	running  sync.WaitGroup // goroutines, none are added once stopped is set
}

var (
	_ manager.Runnable               = &Clients{}
	_ manager.LeaderElectionRunnable = &Clients{}
)

// New returns Clients. They do nothing before Start.
func New(options Options) (*Clients, error) {
	if options.Source == nil {
		return nil, errors.New("clients: must specify Options.Source")
	}
	if options.Credentials == nil {
		return nil, errors.New("clients: must specify Options.Credentials")
	}
	if options.Scheme == nil {
		options.Scheme = scheme.Scheme
	}
	if options.IdleTimeout == 0 {
		options.IdleTimeout = 10 * time.Minute
	}
	return &Clients{
		options:    options,
		profiles:   map[inventory.Key]*inventory.Profile{},
		references: map[inventory.Key]*reference{},
		sources:    map[*eventSource]bool{},
		stopping:   make(chan struct{}),
	}, nil
}

// Start follows the inventory until the context ends. Then all clusters are
// disconnected and requests fail with ErrStopped. The only error is that it was called
// more than once.
func (c *Clients) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	started := c.ctx != nil
	if !started {
		c.ctx = ctx
	}
	c.mu.Unlock()
	if started {
		return errors.New("clients: Start was called more than once")
	}
	defer c.stop()
	if notifier, ok := c.options.Credentials.(credentials.ChangeNotifier); ok {
		notifier.NotifyChange(ctx, c.reconnectAll)
	}
	return inventory.Restart(c.options.Source).Run(ctx, (*sink)(c))
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: Clients run on every
// replica.
func (c *Clients) NeedLeaderElection() bool { return false }

// Client returns the client for the cluster of the profile. All callers share it. It
// has no cache; its REST mapper may be used for other clients of the cluster.
//
// If the cluster is not connected, Client connects it and discovers its resources. It
// returns when that is done, when the context ends, or after 30 s. It does not wait
// for the inventory. The errors are ErrProfileNotFound, ErrNotSynced, ErrStopped,
// that of the context, or why the cluster cannot be connected: those of
// Options.Credentials, of the connection and of discovery.
func (c *Clients) Client(ctx context.Context, profile inventory.Key) (client.WithWatch, error) {
	for {
		c.mu.Lock()
		r, err := c.use(profile)
		if err != nil || r.client != nil {
			var shared client.WithWatch
			if err == nil {
				shared = r.client
			}
			c.mu.Unlock()
			return shared, err
		}
		a, err := r.discovering.join(r.discover)
		c.mu.Unlock()
		if err == nil {
			err = a.wait(ctx)
		}
		if err != nil && !errors.Is(err, errSuperseded) {
			return nil, nameProfile(profile, err)
		}
	}
}

// Config returns a configuration for other clients of the cluster of the profile, such
// as clientsets, a new copy on each call. What holds for clients holds for it, too: it
// can be kept. It sends no request. Its errors are those of Client, without those of
// the connection and of discovery, which requests return.
//
// The caller may set what concerns requests, such as UserAgent, Timeout and QPS, and
// add a wrapper with Wrap. The Transport authenticates. Clients that make connections
// of their own, as for "exec" and "port-forward" into pods, cannot use it: resolve an
// Access for these, with the same credentials.Resolver.
func (c *Clients) Config(ctx context.Context, profile inventory.Key) (*rest.Config, error) {
	r, conn, err := c.acquire(ctx, profile)
	if err != nil {
		return nil, err
	}
	defer r.release()
	return c.configOf(profile, conn), nil
}

// String returns a name for logs.
func (c *Clients) String() string { return fmt.Sprintf("clients of %v", c.options.Source) }

// stop disconnects all clusters and waits for all goroutines.
func (c *Clients) stop() {
	c.mu.Lock()
	for _, r := range c.references {
		r.drop()
	}
	c.stopped = true
	close(c.stopping)
	clear(c.profiles)
	c.mu.Unlock()
	c.running.Wait()
}

// lookup returns why there is no such profile, nil if there is. The lock is held.
func (c *Clients) lookup(key inventory.Key) error {
	profile := c.profiles[key]
	switch {
	case c.stopped:
		return nameProfile(key, ErrStopped)
	case profile == nil && !c.synced:
		return nameProfile(key, ErrNotSynced)
	case profile == nil:
		return nameProfile(key, ErrProfileNotFound)
	}
	return nil
}

// nameProfile adds the profile to an error that does not name it.
func nameProfile(key inventory.Key, err error) error {
	if _, ok := errors.AsType[*credentials.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*profileError](err); ok {
		return err
	}
	return &profileError{key, err}
}

type profileError struct {
	key inventory.Key
	err error
}

func (e *profileError) Error() string { return fmt.Sprintf("ClusterProfile %s: %v", e.key, e.err) }

func (e *profileError) Unwrap() error { return e.err }

// sink is the inventory.Sink of Clients.
type sink Clients

// Put implements inventory.Sink.
func (s *sink) Put(profile *inventory.Profile) {
	c := (*Clients)(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	key := inventory.KeyOf(profile)
	old := c.profiles[key]
	c.profiles[key] = profile
	if len(c.sources) > 0 && (old == nil || accessKey(old) != accessKey(profile)) {
		c.changed(profile)
	}
	if r := c.references[key]; r != nil && r.accessKey != accessKey(profile) {
		r.accessChanged()
	}
}

// Remove implements inventory.Sink.
func (s *sink) Remove(key inventory.Key) {
	c := (*Clients)(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.profiles[key]; old != nil {
		c.changed(old)
	}
	delete(c.profiles, key)
	if r := c.references[key]; r != nil {
		r.drop()
	}
}

// Synced implements inventory.Sink.
func (s *sink) Synced() {
	c := (*Clients)(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.synced = true
}

// reconnectAll resolves the credentials of all clusters in use again.
func (c *Clients) reconnectAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.references {
		r.accessChanged()
	}
}
