// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package pinned builds commands from a pinned set of modules.
package pinned

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A Module is a go.mod with its go.sum. [Module.Build] needs no checkout of it.
type Module struct {
	GoMod, GoSum []byte
}

// Version returns the version of the module path that go.mod requires.
func (m Module) Version(path string) (string, error) {
	for line := range strings.Lines(string(m.GoMod)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == path && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("go.mod requires no version of %s", path)
}

// Build builds the command pkg for this machine as the file out, stripped and
// without cgo, so that no C compiler is needed. It ignores the caller's GOFLAGS
// and go.work, but not GOPROXY and similar variables. An error contains the last
// lines of go's output.
func (m Module) Build(ctx context.Context, pkg, out string, ldflags ...string) error {
	dir, err := os.MkdirTemp("", "rollcall-controlplane-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), m.GoMod, 0o644),
		os.WriteFile(filepath.Join(dir, "go.sum"), m.GoSum, 0o644),
	); err != nil {
		return err
	}

	var output bytes.Buffer
	cmd := Command(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags="+strings.Join(append([]string{"-s", "-w"}, ldflags...), " "), "-o", out, pkg)
	cmd.Dir = dir
	// If GOFLAGS were empty, go would use that of "go env -w".
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOFLAGS=-mod=readonly", "GOWORK=off", "GO111MODULE=on",
		"CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w%s", pkg, err, tail(output.String(), 20))
	}
	return nil
}

// Command is exec.CommandContext for a program that cleans up: when ctx ends, it
// is interrupted, and killed if it does not end.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// tail returns the last n lines of s, each indented.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if lines[0] == "" {
		return ""
	}
	lines = lines[max(0, len(lines)-n):]
	return "\n\t" + strings.Join(lines, "\n\t")
}
