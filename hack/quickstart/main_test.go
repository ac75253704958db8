// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

// role is the environment variable that makes the test binary another program.
const role = "QUICKSTART_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "quickstart":
		main()
	case "talker":
		talk()
	default:
		goleak.VerifyTestMain(m)
	}
}

func TestCommandLine(t *testing.T) {
	for _, tc := range []struct {
		name       string
		args       []string
		wantCode   int
		wantStderr string
	}{
		{"help", []string{"--help"}, exitOK, "Usage: quickstart"},
		{"an argument", []string{"now"}, exitUsage, `takes no arguments, got "now"`},
		{"an unknown source", []string{"--from=nowhere"}, exitUsage, `FROM must be hub, kubeconfig, file or cluster-api, not "nowhere"`},
		{"an unknown flag", []string{"--kept"}, exitUsage, "Usage: quickstart"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var stdout, stderr bytes.Buffer
			g.Expect(run(t.Context(), tc.args, &stdout, &stderr)).To(Equal(tc.wantCode))
			g.Expect(stderr.String()).To(ContainSubstring(tc.wantStderr))
			g.Expect(stdout.String()).To(BeEmpty())
		})
	}

	for name, wantStderr := range map[string]string{
		"KEEP": `KEEP must be 1 or 0, not "maybe"`,
		"FROM": `FROM must be hub, kubeconfig, file or cluster-api, not "maybe"`,
	} {
		t.Run("an invalid "+name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv(name, "maybe")
			var stdout, stderr bytes.Buffer
			g.Expect(run(t.Context(), nil, &stdout, &stderr)).To(Equal(exitUsage))
			g.Expect(stderr.String()).To(ContainSubstring(wantStderr))
			g.Expect(stdout.String()).To(BeEmpty())
		})
	}
}
