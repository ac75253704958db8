// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/runner"
)

const defaultSeparator = "#"

// stopNotice is how long Start waits for providers to stop before it logs which have not.
const stopNotice = 10 * time.Second

// Options of a provider. The zero value is usable.
type Options struct {
	// Separator is between the name of a provider and that of its cluster. Defaults
	// to "#".
	Separator string

	// ChannelSize has no effect. It exists for programs that set it: providers are
	// added without waiting.
	ChannelSize int

	// LoggerSuffix is added to the name of the logger. Defaults to none.
	LoggerSuffix string
}

// Provider combines providers. All methods may be called concurrently.
type Provider struct {
	options Options

	mu        sync.Mutex // guards what follows; not held while code of others is called
	providers map[string]*inner
	indexes   []index
	aware     multicluster.Aware  // of Start, nil before
	ctx       context.Context     // of Start
	stopping  bool                // Start waits for the providers
	running   sync.WaitGroup      // the providers, also those that were removed
	stuck     map[*inner]struct{} // those of running
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider that has no other ones yet.
func New(opts Options) *Provider {
	if opts.Separator == "" {
		opts.Separator = defaultSeparator
	}
	return &Provider{options: opts, providers: map[string]*inner{}, stuck: map[*inner]struct{}{}}
}

// AddProvider adds a provider and starts it, now or with Start, if it is a
// multicluster.ProviderRunnable. It does not wait for it. The indexes added so far are
// added to it, too.
//
// The name must not be empty nor contain the separator. It is an error if it is in use.
// A provider that can be started once, such as a fleet, can be added once.
func (p *Provider) AddProvider(providerName string, provider multicluster.Provider) error {
	switch {
	case isNil(provider):
		return fmt.Errorf("multi provider: provider %q: must not be nil", providerName)
	case providerName == "":
		return errors.New("multi provider: must specify the name of the provider")
	case strings.Contains(providerName, p.options.Separator):
		return fmt.Errorf("multi provider: the name %q must not contain the separator %q", providerName, p.options.Separator)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.providers[providerName] != nil:
		return fmt.Errorf("multi provider: a provider named %q exists already: remove it first", providerName)
	case p.stopping:
		return fmt.Errorf("multi provider: provider %q: cannot be added after the end", providerName)
	}
	i := newInner(p, providerName, provider)
	p.providers[providerName] = i
	if p.aware != nil {
		p.run(i)
	}
	return nil
}

// RemoveProvider removes the provider of that name, if there is one. The contexts of
// its engaged clusters, and of its Start, have ended when it returns. It does not wait
// until the provider has stopped. The name can be used again at once.
func (p *Provider) RemoveProvider(providerName string) {
	p.mu.Lock()
	i := p.providers[providerName]
	delete(p.providers, providerName)
	p.mu.Unlock()
	if i != nil {
		i.end()
	}
}

// GetProvider returns the provider of that name, and whether there is one.
func (p *Provider) GetProvider(providerName string) (multicluster.Provider, bool) {
	i := p.inner(providerName)
	if i == nil {
		return nil, false
	}
	return i.provider, true
}

// ProviderNames returns the names of the providers, sorted.
func (p *Provider) ProviderNames() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.providers))
}

// Get returns the cluster from the provider that the name begins with. The errors are
// multicluster.ErrClusterNotFound, also without such a provider, and
// multicluster.ErrClusterNotReady, with the prefixed name.
func (p *Provider) Get(ctx context.Context, input multicluster.ClusterName) (cluster.Cluster, error) {
	providerName, name, found := strings.Cut(input.String(), p.options.Separator)
	if !found {
		return nil, multicluster.NotFoundError(input)
	}
	i := p.inner(providerName)
	if i == nil {
		return nil, fmt.Errorf("no provider %q: %w", providerName, multicluster.NotFoundError(input))
	}
	cl, err := i.provider.Get(ctx, multicluster.ClusterName(name))
	if err != nil {
		return nil, renamed(err, multicluster.ClusterName(name), input)
	}
	return cl, nil
}

// renamed returns the error with the prefixed name, which requests that wait for the
// cluster are kept by.
func renamed(err error, name, prefixed multicluster.ClusterName) error {
	switch {
	case errors.Is(err, multicluster.ErrClusterNotReady):
		reason := strings.TrimPrefix(err.Error(), multicluster.NotReadyError(name, "").Error())
		return multicluster.NotReadyError(prefixed, strings.TrimPrefix(reason, ": "))
	case errors.Is(err, multicluster.ErrClusterNotFound):
		return multicluster.NotFoundError(prefixed)
	}
	return fmt.Errorf("cluster %q: %w", prefixed, err)
}

// IndexField adds the index to all providers, also to those that are added later. It
// calls them at the same time, and returns when all have returned or the context has
// ended. The errors are joined; the index counts as added nevertheless.
func (p *Provider) IndexField(ctx context.Context, obj client.Object, field string, extractValue client.IndexerFunc) error {
	p.mu.Lock()
	p.indexes = append(p.indexes, index{obj, field, extractValue})
	inners := slices.Collect(maps.Values(p.providers))
	p.mu.Unlock()
	results := make(chan error, len(inners))
	for _, i := range inners {
		go func() { results <- i.addIndexes(ctx) }()
	}
	var errs []error
	for range inners {
		select {
		case err := <-results:
			errs = append(errs, err)
		case <-ctx.Done():
			return errors.Join(append(errs, context.Cause(ctx))...)
		}
	}
	return errors.Join(errs...)
}

// Start runs the providers until the context ends, and returns when all have stopped.
// The manager calls it. The only error is that it was called more than once: a provider
// that fails does not end it.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	if p.options.LoggerSuffix != "" {
		ctx = log.IntoContext(ctx, log.FromContext(ctx).WithName(p.options.LoggerSuffix))
	}
	p.mu.Lock()
	if p.ctx != nil {
		p.mu.Unlock()
		return multicluster.TerminalError(errors.New("multi provider: Start was called more than once: the manager calls it"))
	}
	p.ctx, p.aware = ctx, aware
	for _, i := range p.providers {
		p.run(i)
	}
	p.mu.Unlock()
	defer collected.add(p)()
	<-ctx.Done()
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	notice := time.AfterFunc(stopNotice, func() {
		log.FromContext(ctx).Error(nil, "Timed out stopping providers, still waiting", "providers", p.stuckNames())
	})
	defer notice.Stop()
	p.running.Wait()
	return nil
}

// Run is for programs that run the provider themselves. The manager starts its own
// provider, so for that Run only waits until the context ends. For any other, it is Start.
func (p *Provider) Run(ctx context.Context, mgr mcmanager.Manager) error {
	return runner.Run(ctx, mgr, p)
}

// run runs a provider in a goroutine. The caller holds the lock.
func (p *Provider) run(i *inner) {
	p.stuck[i] = struct{}{}
	ctx, aware := p.ctx, p.aware
	p.running.Go(func() {
		i.run(ctx, aware)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.stuck, i)
	})
}

// stuckNames returns the names of the providers that have not stopped.
func (p *Provider) stuckNames() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for i := range p.stuck {
		names = append(names, i.name)
	}
	slices.Sort(names)
	return names
}

func (p *Provider) inner(name string) *inner {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.providers[name]
}

// inners returns the providers in the order of their names.
func (p *Provider) inners() []*inner {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*inner
	for _, name := range slices.Sorted(maps.Keys(p.providers)) {
		all = append(all, p.providers[name])
	}
	return all
}

// prefix returns the name of a provider's cluster.
func (p *Provider) prefix(providerName string, name multicluster.ClusterName) multicluster.ClusterName {
	return multicluster.ClusterName(providerName + p.options.Separator + name.String())
}
