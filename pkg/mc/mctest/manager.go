// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest

import (
	"context"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Timeout is how long a test waits for a condition that must become true. It is
// far longer than any such wait takes on a busy machine, so a test that reaches
// it has found a fault. With gomega, set it once for all tests of a package:
//
//	func TestMain(m *testing.M) {
//		gomega.SetDefaultEventuallyTimeout(mctest.Timeout)
//		os.Exit(m.Run())
//	}
const Timeout = 30 * time.Second

// stopTimeout is longer than the grace period of a manager, whose own error
// names what did not stop.
const stopTimeout = time.Minute

// ManagerOptions returns options for a manager in a test: it serves no metrics,
// so that it needs no port, and it accepts controller names that another
// manager of the process has used. Set other fields as needed.
func ManagerOptions() manager.Options {
	skip := true
	return manager.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
	}
}

// StartManager starts a manager, or anything else with a Start method that
// blocks until its context is cancelled: a cluster, a cache, a controller. It
// returns at once, without waiting for caches or leader election.
//
// The manager runs until stop is called or the test ends, whichever comes
// first. When the test ends, it is stopped before the clusters that the test
// created earlier are closed. Stop waits until Start has returned, and may be
// called more than once. The test fails if Start returns an error, or does not
// return within a minute of the call to stop.
//
// It also works in a testing/synctest bubble.
func StartManager(tb testing.TB, mgr manager.Runnable) (stop func()) {
	tb.Helper()
	// Not the context of the test: that one is cancelled before the first
	// cleanup, which may still need the manager.
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		tb.Helper()
		cancel()
		timeout := time.NewTimer(stopTimeout)
		defer timeout.Stop()
		select {
		case err := <-ended:
			if err != nil {
				tb.Errorf("mctest: %T failed: %v", mgr, err)
			}
		case <-timeout.C:
			tb.Errorf("mctest: %T did not stop within %v", mgr, stopTimeout)
		}
	})
	tb.Cleanup(stop)
	return stop
}
