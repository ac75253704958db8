// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestInterrupt runs the whole program and interrupts it at different points.
func TestInterrupt(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("needs KUBEBUILDER_ASSETS: make test")
	}
	for _, tc := range []struct {
		name   string
		after  string // the line to wait for
		signal syscall.Signal
	}{
		{"while control planes start", "are built", syscall.SIGTERM},
		{"while the controller runs", "The controller reconciles", os.Interrupt.(syscall.Signal)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			home := t.TempDir()
			command := exec.Command(os.Args[0])
			command.Env = append(os.Environ(), role+"=quickstart", "TMPDIR="+home)
			out := newRecord()
			command.Stdout, command.Stderr = out, out
			g.Expect(command.Start()).To(Succeed())
			ended := make(chan error, 1)
			go func() { ended <- command.Wait() }()

			g.Eventually(func() bool { return out.Contains(tc.after) }, 2*time.Minute).Should(BeTrue())
			g.Eventually(func() ([]string, error) { return filepath.Glob(home + "/*/*") }).ShouldNot(BeEmpty(),
				"there are files to delete")
			for range 3 { // an impatient user
				g.Expect(command.Process.Signal(tc.signal)).To(Succeed())
			}
			var err error
			g.Eventually(ended, time.Minute).Should(Receive(&err))

			g.Expect(err).To(MatchError("exit status 130"), strings.Join(out.lines, "\n"))
			g.Expect(out.Contains("Everything is stopped")).To(BeTrue())
			g.Expect(os.ReadDir(home)).To(BeEmpty(), "no file is left")
			g.Expect(processesWith(home)).To(BeEmpty(), "no process is left")
		})
	}
}

// processesWith returns the command lines that contain the text, on systems with
// /proc.
func processesWith(text string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), text) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
