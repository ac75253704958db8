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
)

// connect makes the cluster of the attempt's profile and engages it. After an
// error nothing of the attempt remains.
func (k *keeper) connect(a *attempt, p *place) (*member, error) {
	k.setStatus(Connecting, k.status.Load().LastError)
	started := time.Now()
	way, err := k.approach(a)
	if err != nil {
		return nil, err
	}
	if err := p.confirm(a); err != nil {
		way.access.Release()
		return nil, err
	}
	m := newMember(k.ctx, a.profile, way)
	// Not all of what follows takes a context. It fails without its transport.
	inTime := context.AfterFunc(a, m.abort)
	err = k.engage(a, m)
	if !inTime() && err == nil {
		err = context.Cause(a)
	}
	if err != nil {
		k.disengage(m)
		return nil, explain(a, err)
	}
	k.setAccess(m)
	k.enter(Ready)
	k.log.Info("Cluster is engaged", "server", way.access.Server(), "provider", way.access.Provider(), "after", time.Since(started).Round(time.Millisecond))
	return m, nil
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

// approach resolves the attempt's profile and asks the cluster who it is.
func (k *keeper) approach(a *attempt) (*approach, error) {
	access, err := k.fleet.options.Credentials.Resolve(a, a.profile)
	if err != nil {
		return nil, explain(a, err)
	}
	return k.examine(a, access)
}

// examine asks the cluster that the access leads to who it is. After an error
// the access is released.
func (k *keeper) examine(a *attempt, access *credentials.Access) (_ *approach, err error) {
	defer func() {
		if err != nil {
			access.Release()
		}
	}()
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
	id, err := identify(a, target, a.profile)
	if err != nil {
		return nil, explain(a, err)
	}
	return &approach{access: access, config: config, target: target, identity: id}, nil
}

// follow exchanges what is under the cluster where the attempt's profile leads
// to it in another way, and tells whether it did. The error is errOtherCluster
// where it leads elsewhere; any other error leaves the cluster as it is.
func (k *keeper) follow(a *attempt, m *member) (exchanged bool, err error) {
	access, err := k.fleet.options.Credentials.Resolve(a, a.profile)
	if err != nil {
		return false, explain(a, err)
	}
	if access.Fingerprint() == m.access.Fingerprint() {
		access.Release()
		return false, nil
	}
	way, err := k.examine(a, access)
	if err != nil {
		return false, err
	}
	if !way.identity.same(m.identity) {
		access.Release()
		return false, errOtherCluster
	}
	old := m.access
	m.access, m.identity = way.access, way.identity
	m.config.Store(way.config)
	m.transport.swap(way.target)
	old.Release() // drops its connections: watches resume on the new ones
	k.setAccess(m)
	k.log.Info("Cluster's access was exchanged under it", "server", access.Server(), "provider", access.Provider())
	return true, nil
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
