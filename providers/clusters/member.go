// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// member is a cluster that was added.
type member struct {
	name    multicluster.ClusterName
	cluster cluster.Cluster
	profile *inventory.Profile

	ctx     context.Context // ends when the cluster is removed
	remove  context.CancelFunc
	stopped chan struct{} // closed when the cluster's Start has returned
	err     error         // why, set before stopped is closed
}

func newMember(ctx context.Context, name multicluster.ClusterName, cl cluster.Cluster, profile *inventory.Profile) *member {
	m := &member{name: name, cluster: cl, profile: profile, stopped: make(chan struct{})}
	m.ctx, m.remove = context.WithCancel(ctx)
	return m
}

// run runs the cluster. Its caches cannot be started twice, so it goes on while the
// fleet disengages and connects the cluster again.
func (m *member) run() {
	defer close(m.stopped)
	if m.ctx.Err() != nil {
		return
	}
	m.err = errors.New("its Start has returned; a cluster cannot be started again: remove it and add another one")
	if err := m.cluster.Start(m.ctx); err != nil {
		m.err = fmt.Errorf("%w: %w", m.err, err)
	}
}

// running is the member as the fleet runs it.
type running struct {
	cluster.Cluster
	member *member
}

// Start waits for the end of the engagement. The error is that the cluster has stopped
// by itself.
func (r running) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.member.stopped:
	}
	if r.member.ctx.Err() == nil {
		return r.member.err
	}
	<-ctx.Done() // removed: the fleet is about to disengage it
	return nil
}

// connector is the fleet's Connector.
type connector Provider

// Connect implements fleet.Connector.
func (c *connector) Connect(_ context.Context, profile *inventory.Profile) (*fleet.Connection, error) {
	name := multicluster.ClusterName(inventory.ClusterName(profile))
	m := (*Provider)(c).member(name)
	if m == nil {
		return nil, fmt.Errorf("cluster %q has been removed", name)
	}
	select {
	case <-m.stopped:
		return nil, fmt.Errorf("cluster %q: %w", name, m.err)
	default:
	}
	connection := &fleet.Connection{Cluster: running{Cluster: m.cluster, member: m}, Fingerprint: fmt.Sprintf("%p", m)}
	if config := m.cluster.GetConfig(); config != nil {
		connection.Server = config.Host
	}
	if reader := m.cluster.GetAPIReader(); reader != nil { // a fake may have none
		connection.Probe = func(ctx context.Context) (string, error) { return probe(ctx, reader) }
	}
	return connection, nil
}

// probe returns the UID of the namespace kube-system, "" if it cannot be read.
func probe(ctx context.Context, reader client.Reader) (uid string, err error) {
	namespace := &corev1.Namespace{}
	err = reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	return string(namespace.UID), err
}

// source is the fleet's Source: it sends the members.
type source Provider

// Run implements inventory.Source.
func (s *source) Run(ctx context.Context, sink inventory.Sink) error {
	var known map[multicluster.ClusterName]*member
	for {
		s.mu.Lock()
		members, changed := maps.Clone(s.members), s.changed
		s.mu.Unlock()
		for name, m := range known {
			if members[name] != m {
				sink.Remove(inventory.KeyOf(m.profile))
			}
		}
		for name, m := range members {
			if known[name] != m {
				sink.Put(m.profile)
			}
		}
		if known == nil {
			sink.Synced()
		}
		known = members
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// String names the source for logs.
func (s *source) String() string { return "given clusters" }
