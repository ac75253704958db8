// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
		name     string
		from     string
		keep     string
		after    string // the line to wait for
		signal   syscall.Signal
		wantCode int
	}{
		{"hub, while control planes start", "hub", "", "are built", syscall.SIGTERM, exitInterrupted},
		{"hub, while its controller runs", "hub", "", "The controller reconciles", syscall.SIGINT, exitInterrupted},
		{"kubeconfig, while its controller runs", "kubeconfig", "", "The controller reconciles", syscall.SIGINT, exitInterrupted},
		{"cluster-api, while its controller runs", "cluster-api", "", "The controller reconciles", syscall.SIGINT, exitInterrupted},
		{"file, while all is kept running", "file", "1", "It prints:", syscall.SIGINT, exitOK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			home := t.TempDir()
			command := exec.Command(os.Args[0])
			command.Env = append(os.Environ(), role+"=quickstart", "TMPDIR="+home, "FROM="+tc.from, "KEEP="+tc.keep)
			out := newRecord()
			command.Stdout, command.Stderr = out, out
			g.Expect(command.Start()).To(Succeed())
			ended := make(chan error, 1)
			go func() { ended <- command.Wait() }()

			g.Eventually(func() bool { return out.Contains(tc.after) }, 2*time.Minute).Should(BeTrue())
			g.Eventually(func() ([]string, error) { return filepath.Glob(home + "/*/*") }).ShouldNot(BeEmpty(),
				"there are files to delete")
			if runtime.GOOS == "linux" {
				g.Eventually(func() []string { return processesIn(home) }).ShouldNot(BeEmpty(), "there are processes to stop")
			}
			for range 3 { // an impatient user
				g.Expect(command.Process.Signal(tc.signal)).To(Succeed())
			}
			var err error
			g.Eventually(ended, time.Minute).Should(Receive(&err))

			if tc.wantCode == exitOK {
				g.Expect(err).NotTo(HaveOccurred(), strings.Join(out.lines, "\n"))
			} else {
				g.Expect(err).To(MatchError(fmt.Sprintf("exit status %d", tc.wantCode)), strings.Join(out.lines, "\n"))
			}
			g.Expect(out.Contains("Everything is stopped")).To(BeTrue())
			g.Expect(os.ReadDir(home)).To(BeEmpty(), "no file is left")
			g.Expect(processesIn(home)).To(BeEmpty(), "no process is left")
		})
	}
}

// processesIn returns the command lines of processes that run in a folder below the
// given one or name it, on systems with /proc.
func processesIn(folder string) []string {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var found []string
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		dir, _ := os.Readlink(filepath.Join(filepath.Dir(file), "cwd"))
		if strings.Contains(string(line), folder) || strings.HasPrefix(dir, folder) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
