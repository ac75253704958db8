// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package gettoken_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestInterrupt(t *testing.T) {
	g := NewWithT(t)
	e := newEnvironment(t)
	e.write("east/hang", "")
	c := e.command("east")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	g.Expect(c.Start()).To(Succeed())
	g.Eventually(func() int { return e.runs("east") }, 20*time.Second, 10*time.Millisecond).Should(Equal(1))
	g.Expect(c.Process.Signal(os.Interrupt)).To(Succeed())
	g.Expect(c.Wait()).NotTo(Succeed())
	g.Expect(c.ProcessState.ExitCode()).To(Equal(1))
	g.Expect(stdout.String()).To(BeEmpty())
	g.Expect(stderr.String()).To(Equal("error: interrupted\n"))
	pid, err := strconv.Atoi(strings.TrimSpace(e.read("east/runs")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error { return syscall.Kill(pid, 0) }, 10*time.Second).Should(MatchError(syscall.ESRCH), "the plugin was stopped")
	left, err := filepath.Glob(filepath.Join(e.dir, ".cache", "rollcall", "get-token", "*.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty())
}
