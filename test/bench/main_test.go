// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench measures the runtime against a controller written by hand on
// controller-runtime alone, which does the same on the same API servers in the
// same process. See docs/benchmarks.md.
package bench

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestMain(m *testing.M) {
	// Written logs would be most of what is measured.
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
