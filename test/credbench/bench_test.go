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

	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/test/internal/measure"
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
	for _, experiment := range []func(testing.TB) []row{
		sharedIdentity, manyIdentities, expiringTogether, requestPath, churn, pluginBinaries,
	} {
		rows = append(rows, experiment(b)...)
	}

	lines := make([][]string, len(rows))
	for i, r := range rows {
		lines[i] = []string{r.measure, r.ours, r.theirs, r.goal, r.verdict()}
	}
	fmt.Printf("\n%s\n", measure.Table([]string{"", "rollcall", "client-go", "goal", ""}, lines))
}
