// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcclusters "github.com/rollcall-dev/rollcall/pkg/mc/clusters"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/runner"
)

// InputChannelSize has no effect. It exists for programs that set it: Add never waits.
var InputChannelSize = 10

// Options of a provider. The zero value is usable.
type Options struct {
	// Connection configures how clusters are connected and monitored. Options that
	// concern the creation of clusters do not apply.
	Connection fleet.ConnectionOptions
}

// Provider provides the clusters that were added. All methods may be called
// concurrently. Those of the Fleet show the state of the clusters.
type Provider struct {
	*fleet.Fleet

	mu      sync.Mutex // guards what follows
	members map[multicluster.ClusterName]*member
	changed chan struct{}   // closed and replaced when members change
	ctx     context.Context // of Start, nil before
	ended   bool            // Start is about to return
	running sync.WaitGroup  // the clusters
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider without clusters.
func New() *Provider { return NewWithOptions(Options{}) }

// NewWithOptions is New with options.
func NewWithOptions(opts Options) *Provider {
	p := &Provider{members: map[multicluster.ClusterName]*member{}, changed: make(chan struct{})}
	f, err := fleet.New(fleet.Options{
		Source:    (*source)(p),
		Connector: (*connector)(p),
		// Each cluster was added on purpose.
		KeepDuplicates: true,
		Connection:     opts.Connection,
	})
	if err != nil {
		panic(fmt.Sprintf("clusters provider: %v", err)) // unreachable: all that is required is set
	}
	p.Fleet = f
	return p
}

// Add adds a cluster until the context ends or Remove is called. It may be called
// before and after Start, and does not wait for the cluster: ErrClusterNotReady of Get
// and Status say why it is not engaged. The provider calls the cluster's Start, once.
//
// The error is ErrClusterExists of pkg/mc/clusters (by errors.Is) and names the
// cluster if the name is taken.
func (p *Provider) Add(ctx context.Context, clusterName multicluster.ClusterName, cl cluster.Cluster) error {
	if cl == nil {
		return fmt.Errorf("clusters provider: cluster %q: must not be nil", clusterName)
	}
	profile, err := inventory.Synthesize(inventory.Synthetic{ClusterName: string(clusterName), Manager: "clusters"})
	if err != nil {
		return fmt.Errorf("clusters provider: %w", err)
	}
	m := newMember(ctx, clusterName, cl, profile)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case p.ended:
		err = errors.New("the provider has stopped")
	case p.members[clusterName] != nil && p.members[clusterName].ctx.Err() == nil:
		err = mcclusters.ErrClusterExists
	}
	if err != nil {
		m.remove()
		return fmt.Errorf("clusters provider: cluster %q: %w", clusterName, err)
	}
	p.members[clusterName] = m
	p.notify()
	if p.ctx != nil {
		p.run(m)
	}
	context.AfterFunc(m.ctx, func() { p.forget(m) })
	return nil
}

// Remove removes the cluster of that name, if there is one, and stops it. It does not
// wait for that. The name can be used again at once, the cluster cannot.
func (p *Provider) Remove(clusterName multicluster.ClusterName) {
	p.mu.Lock()
	m := p.members[clusterName]
	p.mu.Unlock()
	if m != nil {
		m.remove()
		p.forget(m)
	}
}

// GetTyped is Get.
func (p *Provider) GetTyped(ctx context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	return p.Get(ctx, clusterName)
}

// Start runs and engages the clusters until the context ends. The manager calls it.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	p.mu.Lock()
	if p.ctx == nil {
		p.ctx = ctx
		for _, m := range p.members {
			p.run(m)
		}
	}
	p.mu.Unlock()
	err := p.Fleet.Start(ctx, aware)
	if multicluster.IsTerminal(err) {
		return err // another Start is running
	}
	p.stop()
	return err
}

// Run is for programs that run the provider themselves. The manager starts its own
// provider, so for that Run only waits until the context ends. For any other, it is Start.
func (p *Provider) Run(ctx context.Context, mgr mcmanager.Manager) error {
	return runner.Run(ctx, mgr, p)
}

// stop removes and stops all clusters.
func (p *Provider) stop() {
	p.mu.Lock()
	p.ended = true
	for _, m := range p.members {
		m.remove()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// run runs a cluster until it is removed. The caller holds the lock.
func (p *Provider) run(m *member) {
	p.running.Go(m.run)
}

// forget removes a member that has ended.
func (p *Provider) forget(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.members[m.name] == m {
		delete(p.members, m.name)
		p.notify()
	}
}

// notify wakes the source. The caller holds the lock.
func (p *Provider) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Provider) member(name multicluster.ClusterName) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.members[name]
}
