// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench measures Rollcall against what does the same without it, with
// in-process API servers. See docs/benchmarks.md.
//
//   - BenchmarkApart: the runtime, against a controller written by hand on
//     controller-runtime alone, with the API servers in a process of their own
//     (apart_test.go). All others have them in the same process.
//   - BenchmarkAgainstBare: the runtime, against a controller written by hand on
//     controller-runtime alone (experiments_test.go).
//   - BenchmarkFleet: a fleet, against clusters started in a loop with
//     controller-runtime alone (fleet_bench_test.go).
//   - BenchmarkCredentials: credentials, against client-go's own exec
//     authenticator (credentials_bench_test.go).
//   - BenchmarkClients: clients for named profiles, against a client made by hand
//     for each call (clients_bench_test.go).
//   - BenchmarkAHundredOfTwoThousandHang: a fleet with clusters that hang,
//     against one without (hanging_test.go).
package bench

import (
	"io"
	stdlog "log"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// waitLimit bounds every wait. Nothing that is measured takes nearly as long.
const waitLimit = 2 * time.Minute

func TestMain(m *testing.M) {
	// Written logs would be much of what is measured.
	stdlog.SetOutput(io.Discard)
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
