// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/internal/retry"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// WithProviderNeedLeaderElection sets whether the provider runs on the elected
// leader alone. Defaults to true, as for controllers. Set it to false for
// webhooks that need the clusters on every replica, and for controllers that
// are warmed up before the election: each replica then connects to all clusters.
func WithProviderNeedLeaderElection(need bool) Option {
	return func(m *mcManager) {
		m.providerOnAllReplicas = !need
	}
}

// checkProvider returns an error for a nil pointer, which is not nil as a
// Provider and would panic in Get.
func checkProvider(provider multicluster.Provider) error {
	if provider != nil && identity.IsNil(provider) {
		return fmt.Errorf("the provider is a nil %T: for a manager of the local cluster alone, pass nil without a type", provider)
	}
	return nil
}

// providerRunnable runs the provider, and restarts it when it fails if it can be
// started again.
type providerRunnable struct {
	provider      multicluster.ProviderRunnable
	aware         multicluster.Aware
	log           logr.Logger
	scheme        *runtime.Scheme
	onAllReplicas bool
}

// NeedLeaderElection implements controller-runtime's LeaderElectionRunnable.
func (r *providerRunnable) NeedLeaderElection() bool {
	return !r.onAllReplicas
}

func (r *providerRunnable) canRestart() bool {
	restartable, ok := r.provider.(multicluster.RestartableProvider)
	return ok && restartable.CanRestart()
}

// resetAfter is how long a provider must have run for the backoff to start again.
const resetAfter = 5 * time.Minute

// Start runs the provider with a context that carries the manager's logger and
// its scheme.
func (r *providerRunnable) Start(ctx context.Context) error {
	ctx = multicluster.WithScheme(log.IntoContext(ctx, r.log), r.scheme)
	backoff := retry.Backoff(time.Second, time.Minute)
	for {
		started := time.Now()
		err := r.provider.Start(ctx, r.aware)
		if err == nil || ctx.Err() != nil || multicluster.IsTerminal(err) || !r.canRestart() {
			return err
		}
		if time.Since(started) >= resetAfter {
			backoff = retry.Backoff(time.Second, time.Minute)
		}
		delay := backoff.Step()
		r.log.Error(err, "Provider failed, restarting", "retryAfter", delay.Round(time.Millisecond).String())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
	}
}
