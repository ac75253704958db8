// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"
)

var credentialClusters = flag.Int("credential-clusters", 1000, "number of clusters of BenchmarkCredentials")

// BenchmarkCredentials runs all experiments once, whatever -benchtime is, and
// prints the table.
func BenchmarkCredentials(b *testing.B) {
	began := time.Now()
	var rows []row
	for _, experiment := range []func(testing.TB) []row{
		sharedIdentity, manyIdentities, simultaneousExpiry, requestCost, churn, pluginBinaries,
	} {
		rows = append(rows, experiment(b)...)
	}
	publish(b, fmt.Sprintf("%d clusters, %d cores, %s; %.0f s", *credentialClusters, runtime.NumCPU(), runtime.Version(), time.Since(began).Seconds()),
		table("client-go", "rollcall", rows))
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
