// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package matrix tests that what a fleet can do works side by side: while one
// cluster moves, another is degraded, a third has a plugin that hangs, and so on,
// for each pair of such changes. Clusters that nothing happens to must not
// notice.
//
// What happens to which cluster is random. A failure prints the seed:
//
//	ROLLCALL_SEED=17 go test ./test/matrix     # this seed
//	ROLLCALL_SEEDS=100 go test ./test/matrix   # 100 seeds
package matrix

import (
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}
