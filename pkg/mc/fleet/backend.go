// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/hosts"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/mapping"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/monitor"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/restoptions"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/worker"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/fieldindex"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/informer"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// backend is the worker.Backend of a fleet.
type backend struct{ fleet *Fleet }

var _ worker.Backend = &backend{}

// Connect implements worker.Backend.
func (b *backend) Connect(ctx context.Context, profile *inventory.Profile) (worker.Connection, error) {
	if b.fleet.options.Connector != nil {
		return connectStatic(ctx, b.fleet.options.Connector, profile)
	}
	access, err := b.fleet.options.Credentials.Resolve(ctx, profile)
	if err != nil {
		return nil, err
	}
	c, err := b.newConnection(ctx, access)
	if err != nil {
		access.Release()
		return nil, err
	}
	return c, nil
}

// Indexed implements worker.Backend.
func (b *backend) Indexed(name multicluster.ClusterName, cl cluster.Cluster) cluster.Cluster {
	return fieldindex.New(cl, fmt.Sprintf("cluster %q", name), &b.fleet.indexes)
}

// connection is the worker.Connection of an Access. The Access authenticates
// requests and can be switched; REST options wrap its transport.
type connection struct {
	fleet   *Fleet
	access  *credentials.Access
	monitor *monitor.Transport // for all requests but probes
	caches  *informer.Set
	config  atomic.Pointer[rest.Config]
	wrap    transport.WrapperFunc // of NewCluster, which sets it, or nil
	// otherInformers is set if the cluster options replace Cache.NewInformer.
	otherInformers atomic.Bool

	replacement // of connections that are dead
	hosts       hosts.Use
}

var _ worker.Connection = &connection{}

func (b *backend) newConnection(ctx context.Context, access *credentials.Access) (*connection, error) {
	config := access.RESTConfig()
	if err := restoptions.Apply(config, b.fleet.options.Connection.RESTOptions); err != nil {
		return nil, err
	}
	if u, err := url.Parse(access.Server()); err != nil || u.Host == "" {
		return nil, fmt.Errorf("server %q is not a URL with a host", identity.Redact(access.Server()))
	}
	next, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	c := &connection{
		fleet: b.fleet, access: access,
		monitor: monitor.New(next, b.fleet.options.Connection.Clock),
		caches:  informer.NewSet(log.FromContext(ctx)),
	}
	c.monitor.OnData = c.caches.Contacted
	c.config.Store(config)
	return c, nil
}

// NewCluster implements worker.Connection.
func (c *connection) NewCluster(ctx context.Context, profile *inventory.Profile) (cluster.Cluster, error) {
	// The transport authenticates and has TLS, so the host needs its scheme.
	config := rest.AnonymousClientConfig(c.config.Load())
	config.Host = c.access.Server()
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Proxy, config.Dial = nil, nil
	config.Transport = c.caches.Transport(c.monitor)
	c.hosts.Begin(config.Host)
	options := &c.fleet.options.Connection
	opts := append([]cluster.Option{func(o *cluster.Options) {
		o.Logger = log.FromContext(ctx)
		o.Scheme = c.fleet.scheme
		o.Cache.DefaultWatchErrorHandler = watchErrorLogger(log.FromContext(ctx))
		o.Cache.NewInformer = c.caches.New
		o.MapperProvider = mapping.New
	}}, options.ClusterOptions...)
	if options.ClusterOptionsFor != nil {
		opts = append(opts, options.ClusterOptionsFor(profile)...)
	}
	guard := c.newGuard(ctx, profile)
	opts = append(opts, func(o *cluster.Options) {
		if reflect.ValueOf(o.Cache.NewInformer).Pointer() != reflect.ValueOf(c.caches.New).Pointer() {
			c.otherInformers.Store(true)
		}
		limitReads(o, c.fleet.options.ClusterName(profile), options.ConnectTimeout)
		if guard != nil {
			guard.apply(o)
		}
	})
	before := *config
	cl, err := options.NewCluster(ctx, profile, config, opts...)
	var changed error
	if c.wrap, changed = addedWrapper(&before, config, cl); changed != nil {
		return nil, changed
	}
	if guard != nil && c.otherInformers.Load() {
		return nil, errors.New("MaxCacheAge needs the informers of the fleet: do not replace Cache.NewInformer in the cluster options, or set MaxCacheAge to 0")
	}
	return cl, err
}

// newGuard returns the guard of the profile's cluster, nil if there is none.
func (c *connection) newGuard(ctx context.Context, profile *inventory.Profile) *guard {
	options := &c.fleet.options
	if options.Connection.MaxCacheAge <= 0 {
		return nil
	}
	return newGuard(options.ClusterName(profile), options.Connection.MaxCacheAge, c.caches, log.FromContext(ctx))
}

// watchErrorLogger returns a handler that logs errors of watches, which reflectors
// retry, with the logger of the cluster.
func watchErrorLogger(logger logr.Logger) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *cache.Reflector, err error) {
		if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || ctx.Err() != nil {
			return // the watch ended normally
		}
		logger.Info("Watch failed, retrying", "type", r.TypeDescription(), "error", err.Error())
	}
}

// Server implements worker.Connection.
func (c *connection) Server() string { return identity.Redact(c.access.Server()) }

// Provider implements worker.Connection.
func (c *connection) Provider() string { return c.access.Provider() }

// Fingerprint implements worker.Connection.
func (c *connection) Fingerprint() string { return c.access.Fingerprint() }

// Expiry implements worker.Connection.
func (c *connection) Expiry() time.Time {
	expiry, _ := c.access.Expiry()
	return expiry
}

// Informers implements worker.Connection.
func (c *connection) Informers() *informer.Set {
	if c.otherInformers.Load() {
		return nil
	}
	return c.caches
}

// CanProbe implements worker.Connection.
func (c *connection) CanProbe() bool { return true }

// probe reads the identity of the cluster.
func (c *connection) probe(ctx context.Context) (uid string, err error) {
	server, err := url.Parse(c.access.Server())
	if err != nil {
		return "", err
	}
	uid, err = identity.Probe(ctx, c.monitor.Next(), server)
	switch {
	case err == nil:
		c.caches.Contacted()
	case identity.IsUnauthorized(err):
		if token := c.access.DescribeToken(); token != "" {
			err = fmt.Errorf("%w: it was sent a %s: check that it trusts this issuer, expects this audience and can reach the issuer", err, token)
		}
	}
	return uid, err
}

// AliveSince implements worker.Connection.
func (c *connection) AliveSince(since time.Time) bool { return c.monitor.AliveSince(since) }

// Suspect implements worker.Connection.
func (c *connection) Suspect() bool { return c.monitor.Suspect() }

// OpenWatches implements worker.Connection.
func (c *connection) OpenWatches() int { return c.monitor.OpenWatches() }

// Config implements worker.Connection.
func (c *connection) Config() *rest.Config {
	config := rest.CopyConfig(c.config.Load())
	config.Wrap(c.wrap)
	return config
}

// Switch implements worker.Connection.
func (c *connection) Switch(next worker.Connection) bool {
	n, ok := next.(*connection)
	if !ok {
		return false
	}
	c.switching.Lock()
	defer c.switching.Unlock()
	return c.switchTo(n)
}

// switchTo is Switch. The lock is held.
func (c *connection) switchTo(n *connection) bool {
	if c.access.Switch(n.access) != nil {
		return false
	}
	c.switches++
	c.hosts.Move(c.access.Server())
	// REST options may impersonate another user now. They have worked for next.
	config := c.access.RESTConfig()
	if restoptions.Apply(config, c.fleet.options.Connection.RESTOptions) != nil {
		return true
	}
	if next, err := rest.TransportFor(config); err == nil {
		c.config.Store(config)
		c.monitor.SetNext(next)
	}
	return true
}

// Close implements worker.Connection.
func (c *connection) Close() { c.monitor.Close() }

// CloseIdle implements worker.Connection. A request ends moments after its context,
// and a connection that is closed before stays in memory until a timer of net/http2
// fires, after 90 s. So it closes them again after a short time.
func (c *connection) CloseIdle() {
	for pause := time.Millisecond; pause <= 4*time.Millisecond; pause *= 2 {
		c.access.CloseIdleConnections()
		time.Sleep(pause)
	}
}

// Release implements worker.Connection.
func (c *connection) Release() {
	c.access.Release()
	c.hosts.End()
}
