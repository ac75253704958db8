// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleet_test has controllers reconcile a fleet of clusters of which some
// fail, in every way that clusters do. The others must not notice.
package fleet_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// patience is how long a condition is waited for.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}
