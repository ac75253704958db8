// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multi

import (
	"context"
	"fmt"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// ManagerSetupProvider is a provider that is set up with a manager.
type ManagerSetupProvider interface {
	multicluster.Provider

	// SetupWithManager adds the provider to the manager. The provider engages
	// clusters with that manager until the context ends.
	SetupWithManager(ctx context.Context, mgr mcmanager.Manager) error
}

// AsRunnable returns a multicluster.ProviderRunnable for AddProvider. Its Start calls
// SetupWithManager, once, with a manager that engages the provider's clusters under
// their prefix, and then the provider's own Start, if it has one. An error of
// SetupWithManager is a multicluster.TerminalError, as what it added to the manager
// cannot be removed.
func AsRunnable(p ManagerSetupProvider, mgr mcmanager.Manager) multicluster.Provider {
	return &runnable{ManagerSetupProvider: p, mgr: mgr}
}

type runnable struct {
	ManagerSetupProvider
	mgr   mcmanager.Manager
	setUp bool // Start is called by one goroutine at a time
}

var _ multicluster.RestartableProvider = &runnable{}

// Start implements multicluster.ProviderRunnable.
func (r *runnable) Start(ctx context.Context, aware multicluster.Aware) error {
	mgr := &engagingManager{Manager: r.mgr, aware: aware}
	if !r.setUp {
		r.setUp = true
		if err := r.SetupWithManager(ctx, mgr); err != nil {
			return multicluster.TerminalError(fmt.Errorf("cannot set up the provider: %w", err))
		}
	}
	if p, ok := r.ManagerSetupProvider.(multicluster.ProviderRunnable); ok {
		return p.Start(ctx, mgr)
	}
	<-ctx.Done()
	return nil
}

// CanRestart implements multicluster.RestartableProvider.
func (r *runnable) CanRestart() bool {
	p, ok := r.ManagerSetupProvider.(multicluster.RestartableProvider)
	return ok && p.CanRestart()
}

// unwrap returns the provider with the methods of its own.
func unwrap(p multicluster.Provider) multicluster.Provider {
	if r, ok := p.(*runnable); ok {
		return r.ManagerSetupProvider
	}
	return p
}
