// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/mapping"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// requestsEndWithin is how long requests to a cluster that leaves may take to
// notice that. It is little, and so of the real time.
const requestsEndWithin = time.Second

// connect makes the cluster of the attempt's profile and engages it. After an
// error nothing of the attempt remains.
func (k *keeper) connect(a *attempt, p *place) (*member, error) {
	k.setStatus(Connecting, ResolvingAccess, k.status.Load().LastError, func(log logr.Logger) { log.V(1).Info("Cluster is being connected") })
	started := k.fleet.options.Connection.Clock.Now()
	way, err := k.approach(a, nil)
	if err != nil {
		return nil, err
	}
	if err := a.untimed(func() error { return p.confirm(a) }); err != nil {
		way.release()
		return nil, err
	}
	m := newMember(k, a.profile, way, p)
	// Not all of what follows takes the attempt's context. It fails without the
	// member's and without its transport.
	inTime := context.AfterFunc(a, func() {
		m.cancel()
		m.abort()
		p.leave()
	})
	err = k.engage(a, m)
	if !inTime() && err == nil {
		err = context.Cause(a)
	}
	if err != nil {
		err = explain(a, err)
		k.disengage(m)
		return nil, err
	}
	k.note(way)
	k.setStatus(Ready, Engaged, "", func(log logr.Logger) {
		after := k.fleet.options.Connection.Clock.Since(started).Round(time.Millisecond)
		log.Info("Cluster is engaged", "server", way.server, "provider", way.provider, "after", after.String())
	})
	return m, nil
}

// engage makes and starts the member's cluster and tells of it. A cluster that
// ends meanwhile ends the attempt.
func (k *keeper) engage(a *attempt, m *member) (err error) {
	k.setStatus(Syncing, SyncingCaches, k.status.Load().LastError, func(log logr.Logger) { log.V(1).Info("Cluster has answered, its caches are filled") })
	if m.Cluster, err = k.newCluster(a, m); err != nil {
		return because(SetupFailed, fmt.Errorf("cannot make the cluster: %w", err))
	}
	if err := k.fleet.addIndexes(a, m); err != nil {
		return because(SetupFailed, err)
	}
	m.start(a.cancel)
	if !m.GetCache().WaitForCacheSync(a) {
		return because(SyncTimeout, errors.New("the caches did not sync"))
	}
	m.listed = m.listings.count()
	k.setReason(Engaging)
	k.engaged.Store(m)
	if err := k.aware.Engage(m.ctx, k.name, m); err != nil {
		return because(EngageFailed, fmt.Errorf("cannot engage: %w", err))
	}
	return nil
}

func (k *keeper) newCluster(ctx context.Context, m *member) (cluster.Cluster, error) {
	if m.way.cluster != nil {
		return m.way.cluster, nil
	}
	// Clients are made with the first address and the transport that follows
	// the current one, which also authenticates.
	config := rest.AnonymousClientConfig(m.config.Load())
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Proxy, config.Dial = nil, nil
	config.Transport = m.transport
	named := func(o *cluster.Options) {
		o.Logger = k.log
		o.Scheme = multicluster.SchemeFrom(k.ctx) // the manager's, nil for the default
		o.Cache.DefaultWatchErrorHandler = k.watchFailed
		o.Cache.NewInformer = m.listings.newInformer
		o.MapperProvider = mapping.New
	}
	profile := m.profile.Load()
	opts := append([]cluster.Option{named}, k.fleet.options.Connection.ClusterOptions...)
	if k.fleet.options.Connection.ClusterOptionsFor != nil {
		opts = append(opts, k.fleet.options.Connection.ClusterOptionsFor(profile)...)
	}
	return k.fleet.options.Connection.NewCluster(ctx, profile, config, opts...)
}

// watchFailed says which cluster's watch has failed. client-go, which goes on
// trying, would leave that out.
func (k *keeper) watchFailed(_ context.Context, r *cache.Reflector, err error) {
	if errors.Is(err, io.EOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || k.ctx.Err() != nil {
		return // a watch that has run its time
	}
	k.log.Info("Watch failed, trying again", "type", r.TypeDescription(), "error", err.Error())
}

// disengage undoes connect, as far as that came, and waits for the cluster to
// end.
func (k *keeper) disengage(m *member) {
	wasEngaged := k.engaged.Swap(nil) != nil
	m.cancel()
	m.transport.close()
	k.fleet.forgetIndexes(m)
	ended := m.end()
	select {
	case <-ended:
		m.way.closeIdle()
	case <-time.After(requestsEndWithin):
	}
	m.abort() // also the end of what does not keep to its context
	timeout := k.fleet.options.Connection.Clock.NewTimer(k.fleet.options.Connection.ConnectTimeout)
	defer timeout.Stop()
	select {
	case <-ended:
		if wasEngaged {
			k.log.Info("Cluster is disengaged")
		}
	case <-timeout.C():
		k.log.Error(nil, "Cluster was told to leave, but its caches have not ended", "after", k.fleet.options.Connection.ConnectTimeout.String())
	}
}
