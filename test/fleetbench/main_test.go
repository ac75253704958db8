// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package fleetbench measures what a fleet costs, against clusters that are
// started in a loop with controller-runtime alone on the same API servers in the
// same process. See docs/fleet.md.
package fleetbench

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	// Written logs would be much of what is measured.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
