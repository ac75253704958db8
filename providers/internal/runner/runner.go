// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package runner has what the Run methods of providers share.
package runner

import (
	"context"
	"errors"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Provider is a provider that can be started.
type Provider interface {
	multicluster.Provider
	multicluster.ProviderRunnable
}

// Run starts a provider for the manager, and returns when it ends. For the provider of the
// manager, which the manager starts, it only waits until the context ends.
func Run(ctx context.Context, mgr mcmanager.Manager, provider Provider) error {
	if mgr == nil {
		return errors.New("cannot run the provider: the manager must not be nil")
	}
	if mgr.GetProvider() == multicluster.Provider(provider) {
		<-ctx.Done()
		return nil
	}
	return provider.Start(ctx, mgr)
}
