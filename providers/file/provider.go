// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/kubeconfigs"
)

// Provider provides the clusters of kubeconfig files. All methods may be called
// concurrently.
type Provider struct {
	*fleet.Fleet
	source *source

	mu      sync.Mutex // guards what follows
	started bool       // Start was called
	running *running   // nil before Start and RunOnce
}

// running is the fleet of a provider that runs.
type running struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // valid once ended is closed
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider, which the manager starts. It reads no file.
func New(opts Options) (*Provider, error) {
	p, err := newProvider(opts)
	if err != nil {
		return nil, fmt.Errorf("file provider: %w", err)
	}
	return p, nil
}

func newProvider(opts Options) (*Provider, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	// The resolver lives as long as the process, as a provider cannot be closed. It has
	// no goroutine after the fleet has stopped.
	resolver, err := kubeconfig.New(kubeconfig.Options{Trusted: true, Exec: opts.Exec})
	if err != nil {
		return nil, err
	}
	store := kubeconfigs.NewStore(resolver)
	p := &Provider{source: newSource(&opts, store)}
	p.Fleet, err = fleet.New(fleet.Options{Source: p.source, Credentials: store, KeepDuplicates: true, Connection: opts.connection()})
	if err != nil {
		return nil, err
	}
	p.source.recheck = p.Recheck
	return p, nil
}

// Source returns the inventory of the files, which follows them: see fleet.Fleet.
func (p *Provider) Source() inventory.Source {
	p.source.follow()
	return p.source
}

// Start implements multicluster.ProviderRunnable: it follows the files until the context
// ends. The manager calls it. It may follow calls of RunOnce.
func (p *Provider) Start(ctx context.Context, mcAware multicluster.Aware) error {
	p.mu.Lock()
	started := p.started
	p.started = true
	p.mu.Unlock()
	if started {
		return multicluster.TerminalError(errors.New("file provider: Start was called more than once: the manager calls it"))
	}
	p.source.follow()
	r := p.run(ctx, mcAware)
	select {
	case <-r.ended:
	case <-ctx.Done():
		r.cancel()
		<-r.ended
	}
	return r.err
}

// RunOnce reads all files, and returns when each cluster is engaged or cannot be
// connected, or when the context ends. Its error has those of all clusters. It can be
// called again, to read the files again. Clusters of a first call stay engaged until its
// context ends. Once the provider was started, RunOnce need not be called.
func (p *Provider) RunOnce(ctx context.Context, mcAware multicluster.Aware) error {
	r := p.run(ctx, mcAware)
	read := make(chan struct{})
	select {
	case p.source.requests <- read:
	case <-r.ended:
		return errors.Join(ctx.Err(), r.err)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-read:
	case <-r.ended:
		return errors.Join(ctx.Err(), r.err)
	case <-ctx.Done():
		return ctx.Err()
	}
	return p.await(ctx)
}

// run runs the fleet, unless it runs already.
func (p *Provider) run(ctx context.Context, aware multicluster.Aware) *running {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running != nil {
		return p.running
	}
	r := &running{ended: make(chan struct{})}
	ctx, r.cancel = context.WithCancel(ctx)
	p.running = r
	go func() {
		defer close(r.ended)
		defer r.cancel()
		r.err = p.Fleet.Start(ctx, aware)
	}()
	return r
}

// await returns when no cluster is being connected for the first time.
func (p *Provider) await(ctx context.Context) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		all := p.Status()
		if !slices.ContainsFunc(all, isConnecting) {
			return errorsOf(all)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func isConnecting(s fleet.ClusterStatus) bool {
	switch s.State {
	case fleet.Ready, fleet.Degraded, fleet.Backoff:
		return false
	}
	return s.Reason != fleet.DuplicateName
}

// errorsOf returns the errors of all clusters, by name.
func errorsOf(all []fleet.ClusterStatus) error {
	slices.SortFunc(all, func(a, b fleet.ClusterStatus) int { return strings.Compare(a.Name.String(), b.Name.String()) })
	var errs []error
	for _, s := range all {
		if s.LastError != "" {
			errs = append(errs, fmt.Errorf("cluster %q: %s", s.Name, s))
		}
	}
	return errors.Join(errs...)
}

// Run is for programs that run the provider themselves. The manager starts its own
// provider, so for that Run only waits until the context ends. For any other, it is Start.
func (p *Provider) Run(ctx context.Context, mgr mcmanager.Manager) error {
	if mgr.GetProvider() == multicluster.Provider(p) {
		<-ctx.Done()
		return nil
	}
	return p.Start(ctx, mgr)
}

// GetTyped is Get.
func (p *Provider) GetTyped(ctx context.Context, clusterName multicluster.ClusterName) (cluster.Cluster, error) {
	return p.Get(ctx, clusterName)
}

// Remove disengages a cluster, until its file changes. It does not wait for that. A
// cluster that does not exist is ignored.
func (p *Provider) Remove(clusterName multicluster.ClusterName) { p.source.hide(clusterName.String()) }
