// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// pluginBinaries measures the plugins of Rollcall, built as for releases.
func pluginBinaries(tb testing.TB) []row {
	var rows []row
	for _, plugin := range []struct {
		folder, name string
		limit        float64 // MiB
	}{
		{"token-secret", "mc-credential-token-secret", 30},
		{"gcp", "mc-credential-gcp", 15},
	} {
		source := "../../plugins/" + plugin.folder + "/cmd/" + plugin.name
		if _, err := os.Stat(source); err != nil {
			continue
		}
		binary := filepath.Join(tb.TempDir(), plugin.name)
		build := exec.CommandContext(tb.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./"+source)
		if output, err := build.CombinedOutput(); err != nil {
			tb.Fatalf("%v: %s", err, output)
		}
		info, err := os.Stat(binary)
		check(tb, err)

		var starts []float64
		for range 21 {
			run := exec.CommandContext(tb.Context(), binary, "--version")
			began := time.Now()
			check(tb, run.Run())
			starts = append(starts, time.Since(began).Seconds())
		}
		rows = append(rows,
			single(plugin.name+": size", mebibytes, atMost(plugin.limit*(1<<20)), float64(info.Size())),
			single(plugin.name+": start", shortTime, nil, median(starts)),
		)
	}
	return rows
}
