// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package credbench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// pluginBinaries measures the plugins that come with Rollcall, as they are
// installed.
func pluginBinaries(t testing.TB) []row {
	var rows []row
	for _, plugin := range []struct {
		folder, name string
		most         float64 // MiB
	}{
		{"token-secret", "mc-credential-token-secret", 30},
		{"gcp", "mc-credential-gcp", 15},
	} {
		source := "../../plugins/" + plugin.folder + "/cmd/" + plugin.name
		if _, err := os.Stat(source); err != nil {
			continue
		}
		binary := filepath.Join(t.TempDir(), plugin.name)
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "./"+source)
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		info, err := os.Stat(binary)
		check(t, err)
		size := float64(info.Size()) / (1 << 20)

		var starts []time.Duration
		for range 21 {
			run := exec.CommandContext(t.Context(), binary, "--version")
			began := time.Now()
			check(t, run.Run())
			starts = append(starts, time.Since(began))
		}
		slices.Sort(starts)
		rows = append(rows,
			row{plugin.name + ": size", fmt.Sprintf("%.1f MiB", size), "", fmt.Sprintf("≤ %.0f MiB", plugin.most), size <= plugin.most},
			row{plugin.name + ": start", ms(starts[len(starts)/2]), "", "", false},
		)
	}
	return rows
}
