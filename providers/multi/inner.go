// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multi

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// resetAfter is how long a provider must have run for the backoff to start again.
const resetAfter = 5 * time.Minute

// inner is one of the providers.
type inner struct {
	of       *Provider
	name     string
	provider multicluster.Provider

	ctx    context.Context // ends when the provider is removed
	remove context.CancelFunc

	// indexing has one token: held while the provider adds an index.
	indexing chan struct{}
	indexed  int // how many of the indexes it has been given; for the holder of the token

	mu     sync.Mutex // guards what follows
	state  ProviderState
	err    error
	latest *run // nil before the first one
}

// index is an index that was added.
type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

func newInner(of *Provider, name string, provider multicluster.Provider) *inner {
	i := &inner{of: of, name: name, provider: provider, indexing: make(chan struct{}, 1), state: Added}
	i.ctx, i.remove = context.WithCancel(context.Background())
	return i
}

// addIndexes adds the indexes that the provider does not have yet, each once.
func (i *inner) addIndexes(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(i.ctx, cancel)()
	select {
	case i.indexing <- struct{}{}:
		defer func() { <-i.indexing }()
	case <-ctx.Done():
		if i.ctx.Err() != nil {
			return nil // it has been removed
		}
		return fmt.Errorf("provider %q: %w", i.name, context.Cause(ctx))
	}
	var first error
	for {
		i.of.mu.Lock()
		missing := i.of.indexes[i.indexed:]
		i.of.mu.Unlock()
		if len(missing) == 0 {
			return first
		}
		i.indexed++
		if err := i.provider.IndexField(ctx, missing[0].object, missing[0].field, missing[0].extract); err != nil && i.ctx.Err() == nil && first == nil {
			first = fmt.Errorf("provider %q: %w", i.name, err)
		}
	}
}

// run runs the provider until it is removed or the context ends, and restarts it when
// it fails.
func (i *inner) run(ctx context.Context, aware multicluster.Aware) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(i.ctx, cancel)()
	logger := log.FromContext(ctx).WithValues("provider", i.name)
	ctx = log.IntoContext(ctx, logger)
	if err := i.addIndexes(ctx); err != nil && ctx.Err() == nil {
		logger.Error(err, "Cannot add field indexes to provider")
	}
	runnable, ok := i.provider.(multicluster.ProviderRunnable)
	if !ok {
		i.set(Running, nil)
		<-ctx.Done()
		return
	}
	backoff := newBackoff()
	for ctx.Err() == nil {
		i.set(Running, nil)
		started := time.Now()
		err := i.start(ctx, runnable, aware)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			i.set(Ended, nil)
			<-ctx.Done() // its clusters stay until then
			return
		}
		i.endRun()
		if restartable, ok := runnable.(multicluster.RestartableProvider); multicluster.IsTerminal(err) || !ok || !restartable.CanRestart() {
			i.set(Failed, err)
			logger.Error(err, "Provider failed and cannot be restarted, remove it and add another one")
			return
		}
		if time.Since(started) >= resetAfter {
			backoff = newBackoff()
		}
		delay := backoff.Step()
		i.set(Restarting, err)
		logger.Error(err, "Provider failed, restarting", "retryAfter", delay.Round(time.Millisecond).String())
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// start runs the provider once.
func (i *inner) start(ctx context.Context, runnable multicluster.ProviderRunnable, aware multicluster.Aware) error {
	r := newRun(ctx, i, aware)
	i.mu.Lock()
	i.latest = r
	i.mu.Unlock()
	if i.ctx.Err() != nil { // end may have missed it
		r.end()
	}
	return runnable.Start(r.ctx, r.aware())
}

// end ends the provider, which has been removed, and the engagements of its clusters.
func (i *inner) end() {
	i.remove()
	i.endRun()
}

// endRun ends the engagements of the last run.
func (i *inner) endRun() {
	i.mu.Lock()
	r := i.latest
	i.mu.Unlock()
	if r != nil {
		r.end()
	}
}

func (i *inner) set(state ProviderState, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.state, i.err = state, err
}

func (i *inner) status() ProviderStatus {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := ProviderStatus{Name: i.name, State: i.state}
	if i.err != nil {
		s.LastError = i.err.Error()
	}
	return s
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 32, Cap: time.Minute}
}

// isNil reports whether the provider is nil or a nil pointer.
func isNil(provider multicluster.Provider) bool {
	v := reflect.ValueOf(provider)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
