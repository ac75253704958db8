// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
)

// connector is the fleet's Connector.
type connector struct {
	cluster cluster.Cluster
	indexes sharedIndexes
	prober  *prober
	limit   time.Duration // of reads
}

func newConnector(cl cluster.Cluster, options fleet.ConnectionOptions) *connector {
	limit := options.ConnectTimeout
	if limit <= 0 {
		limit = 30 * time.Second // as in a fleet
	}
	return &connector{cluster: cl, prober: newProber(cl, options.Probe.Interval), limit: limit}
}

// Connect implements fleet.Connector.
func (c *connector) Connect(ctx context.Context, profile *inventory.Profile) (*fleet.Connection, error) {
	name, uid := inventory.ClusterName(profile), inventory.ClusterID(profile)
	cl, closeCluster := newCluster(name, c.cluster, &c.indexes, c.limit, log.FromContext(ctx))
	connection := &fleet.Connection{
		Cluster:     cl,
		Fingerprint: uid,
		// The source removes a namespace that is created again with another UID.
		Probe: func(ctx context.Context) (string, error) { return uid, c.prober.probe(ctx) },
		Close: closeCluster,
	}
	if config := c.cluster.GetConfig(); config != nil {
		connection.Server = config.Host
	}
	return connection, nil
}

// prober probes the underlying cluster, once for all namespaces that ask within a
// time.
type prober struct {
	cluster cluster.Cluster
	within  time.Duration

	mu     sync.Mutex // guards latest
	latest *probe
}

// probe is a request, under way or answered.
type probe struct {
	done chan struct{}
	at   time.Time // of the answer
	err  error
}

// newProber returns a prober. A result is younger than the time between two probes of one
// namespace, so that no result counts twice for it.
func newProber(cl cluster.Cluster, interval time.Duration) *prober {
	if interval <= 0 {
		interval = 10 * time.Second
	}
	return &prober{cluster: cl, within: interval / 2}
}

func (p *prober) probe(ctx context.Context) error {
	for {
		request, own := p.join()
		if own {
			err := p.send(ctx)
			p.mu.Lock()
			request.at, request.err = time.Now(), err
			p.mu.Unlock()
			close(request.done)
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-request.done:
			if request.err == nil || !isContextError(request.err) {
				return request.err
			}
			// Only the context of the namespace that sent it may have ended.
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			p.forget(request)
		}
	}
}

// join returns the latest request, or a new one that the caller sends.
func (p *prober) join() (_ *probe, own bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest != nil && (p.latest.at.IsZero() || time.Since(p.latest.at) < p.within) {
		return p.latest, false
	}
	p.latest = &probe{done: make(chan struct{})}
	return p.latest, true
}

// forget makes the next caller send another request.
func (p *prober) forget(request *probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest == request {
		p.latest = nil
	}
}

// send reads the namespace kube-system. Any response of an API server will do.
func (p *prober) send(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	err := p.cluster.GetAPIReader().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot reach the cluster of the namespaces: %w", err)
	}
	return nil
}
