// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// connect makes the cluster of the latest profile and engages it. After an
// error nothing of the attempt remains.
func (k *keeper) connect() (*member, error) {
	ctx, cancel := k.attempt()
	defer cancel()
	k.setStatus(Connecting, k.status.Load().LastError)
	started := time.Now()

	profile := k.latest.Load()
	a, err := k.approach(ctx, profile)
	if err != nil {
		return nil, err
	}
	m := newMember(k.ctx, profile, a)
	// Not all of what follows takes a context. It fails without its transport.
	inTime := context.AfterFunc(ctx, m.abort)
	err = k.engage(ctx, m)
	if !inTime() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		k.disengage(m)
		return nil, explain(ctx, err)
	}
	k.setServer(a.access.Server())
	k.enter(Ready)
	k.log.Info("Cluster is engaged", "server", a.access.Server(), "provider", a.access.Provider(), "after", time.Since(started).Round(time.Millisecond))
	return m, nil
}

// attempt returns the context of one attempt to reach the cluster.
func (k *keeper) attempt() (context.Context, context.CancelFunc) {
	limit := k.fleet.options.ConnectTimeout
	return context.WithTimeoutCause(k.ctx, limit, fmt.Errorf("no result within %v", limit))
}

// engage makes and starts the member's cluster and tells of it.
func (k *keeper) engage(ctx context.Context, m *member) (err error) {
	k.setStatus(Syncing, k.status.Load().LastError)
	if m.Cluster, err = k.newCluster(ctx, m); err != nil {
		return fmt.Errorf("cannot make the cluster: %w", err)
	}
	if err := k.fleet.addIndexes(ctx, m); err != nil {
		return err
	}
	m.start()
	if !m.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the caches did not sync")
	}
	k.engaged.Store(m)
	if err := k.aware.Engage(m.ctx, k.name, m); err != nil {
		return fmt.Errorf("cannot engage: %w", err)
	}
	return nil
}

// explain puts the time limit in the place of the errors that it caused.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func (k *keeper) newCluster(ctx context.Context, m *member) (cluster.Cluster, error) {
	// Clients are made with the first address and the transport that follows
	// the current one, which also authenticates.
	config := rest.AnonymousClientConfig(m.config.Load())
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Proxy, config.Dial = nil, nil
	config.Transport = m.transport
	named := func(o *cluster.Options) {
		o.Logger = k.log
		o.Cache.DefaultWatchErrorHandler = k.watchFailed
	}
	opts := append([]cluster.Option{named}, k.fleet.options.ClusterOptions...)
	return k.fleet.options.NewCluster(ctx, m.profile.Load(), config, opts...)
}

// watchFailed says which cluster's watch has failed. client-go, which goes on
// trying, would leave that out.
func (k *keeper) watchFailed(_ context.Context, r *cache.Reflector, err error) {
	if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || k.ctx.Err() != nil {
		return // a watch that has run its time
	}
	k.log.Info("Watch failed, trying again", "type", r.TypeDescription(), "error", err.Error())
}

// approach is a way to a cluster that has been shown to work.
type approach struct {
	access   *credentials.Access
	config   *rest.Config
	target   *target
	identity identity
}

// approach resolves the profile and asks the cluster who it is.
func (k *keeper) approach(ctx context.Context, profile *inventory.Profile) (*approach, error) {
	access, err := k.fleet.options.Credentials.Resolve(ctx, profile)
	if err != nil {
		return nil, err
	}
	a, err := k.try(ctx, access, profile)
	if err != nil {
		access.Release()
		return nil, err
	}
	return a, nil
}

func (k *keeper) try(ctx context.Context, access *credentials.Access, profile *inventory.Profile) (*approach, error) {
	config := access.RESTConfig()
	for _, option := range k.fleet.options.RESTOptions {
		if err := option(config); err != nil {
			return nil, fmt.Errorf("REST option: %w", err)
		}
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, err := newTarget(config.Host, transport)
	if err != nil {
		return nil, err
	}
	id, err := identify(ctx, target, profile)
	if err != nil {
		return nil, explain(ctx, err)
	}
	return &approach{access: access, config: config, target: target, identity: id}, nil
}

// follow exchanges what is under the cluster where the latest profile leads to
// it in another way. The error is errOtherCluster where it leads elsewhere; any
// other error leaves the cluster as it is.
func (k *keeper) follow(m *member) error {
	ctx, cancel := k.attempt()
	defer cancel()
	profile := k.latest.Load()
	access, err := k.fleet.options.Credentials.Resolve(ctx, profile)
	if err != nil {
		return err
	}
	if access.Fingerprint() == m.access.Fingerprint() {
		access.Release()
		return nil
	}
	a, err := k.try(ctx, access, profile)
	if err != nil {
		access.Release()
		return err
	}
	if !a.identity.same(m.identity) {
		access.Release()
		return errOtherCluster
	}
	old := m.access
	m.access, m.identity = a.access, a.identity
	m.config.Store(a.config)
	m.transport.swap(a.target)
	old.Release() // drops its connections: watches resume on the new ones
	k.setServer(a.access.Server())
	k.log.Info("Cluster's access was exchanged under it", "server", a.access.Server(), "provider", a.access.Provider())
	return nil
}

func (k *keeper) setServer(server string) {
	next := *k.status.Load()
	next.Server = server
	k.status.Store(&next)
}

// disengage undoes connect, as far as that came, and waits for the cluster to
// end.
func (k *keeper) disengage(m *member) {
	if k.ctx.Err() != nil {
		k.enter(Leaving)
	}
	wasEngaged := k.engaged.Swap(nil) != nil
	m.cancel()
	m.abort()
	k.fleet.forgetIndexes(m)
	if !m.started {
		return
	}
	timeout := time.NewTimer(k.fleet.options.ConnectTimeout)
	defer timeout.Stop()
	select {
	case <-m.stopped:
		if wasEngaged {
			k.log.Info("Cluster is disengaged")
		}
	case <-timeout.C:
		k.log.Error(nil, "Cluster was told to leave, but its caches have not ended", "after", k.fleet.options.ConnectTimeout)
	}
}
