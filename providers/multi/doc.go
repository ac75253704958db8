// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package multi combines providers. A cluster has the name of its provider as a prefix:
//
//	provider := multi.New(multi.Options{})
//	err := provider.AddProvider("kind", kind.New())
//	err = provider.AddProvider("home", single.New("eu", cl))
//	mgr, err := mcmanager.New(config, provider, mcmanager.Options{})
//	…
//	cl, err := mgr.GetCluster(ctx, "kind#dev")
//
// Providers can be added and removed while the manager runs. Each runs in a goroutine
// of its own: one that is slow, hangs or fails does not affect the others. Their
// clusters are engaged as they are, with health, startup slots and status.
//
// # Providers that fail
//
// After an error of its Start, the clusters of a provider are disengaged. A
// multicluster.RestartableProvider is started again, with backoff from 1 s to 1 min,
// unless the error is a multicluster.TerminalError. Any other provider has failed: its
// error is logged, shown by ProviderStatus and the readiness check, and counted by the
// metric rollcall_multi_providers, until it is removed. The manager goes on. If Start
// returns nil, the provider is not started again and its clusters stay.
package multi
