// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package credbench measures what credentials cost, beside client-go's own exec
// authenticator where that does the same. It prints one table:
//
//	go test -run '^$' -bench . ./test/credbench
package credbench

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"testing"
	"text/tabwriter"

	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

var clusters = flag.Int("clusters", 1000, "number of clusters of the fleet that is measured")

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetOutput(io.Discard)
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctrllog.SetLogger(klog.Background())
	os.Exit(m.Run())
}

// row is one measure of the table. Where there is no goal, ok does not matter.
type row struct {
	measure, ours, theirs, goal string
	ok                          bool
}

func (r row) verdict() string {
	switch {
	case r.goal == "":
		return ""
	case r.ok:
		return "ok"
	}
	return "miss"
}

// BenchmarkCredentials takes a few minutes, so that it is done once.
func BenchmarkCredentials(b *testing.B) {
	var rows []row
	for _, measure := range []func(testing.TB) []row{
		sharedIdentity, manyIdentities, expiringTogether, requestPath, churn, pluginBinaries,
	} {
		rows = append(rows, measure(b)...)
	}

	fmt.Println()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "measure\trollcall\tclient-go\tgoal\t")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.measure, r.ours, r.theirs, r.goal, r.verdict())
	}
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
}
