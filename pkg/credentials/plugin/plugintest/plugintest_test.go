// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/plugintest"
)

// The test binary is also the plugin. This variable names its fault.
const faultVariable = "PLUGINTEST_FAULT"

func TestMain(m *testing.M) {
	if fault, found := os.LookupEnv(faultVariable); found {
		runPlugin(fault)
		return
	}
	goleak.VerifyTestMain(m)
}

// command runs the plugin with the fault.
func command(t *testing.T, fault string) plugintest.Command {
	t.Helper()
	return plugintest.Command{
		Path: os.Args[0],
		Env: []string{
			faultVariable + "=" + fault,
			folderVariable + "=" + t.TempDir(),
			"GORACE=atexit_sleep_ms=0", // else the race detector adds a second to each run
		},
		Cluster: &plugin.Cluster{Server: "https://c1:6443", Config: json.RawMessage(`{"name":"c1"}`)},
		Secrets: []string{"own-secret"},
		Stall:   stall(t),
	}
}

// stall makes the plugin connect to a server that never responds.
func stall(t *testing.T) func(*plugintest.Command) <-chan struct{} {
	return func(c *plugintest.Command) <-chan struct{} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c.Env = append(slices.Clone(c.Env), stallVariable+"="+listener.Addr().String())
		waiting, ended := make(chan struct{}), make(chan struct{})
		t.Cleanup(func() {
			_ = listener.Close()
			<-ended
		})
		go func() {
			defer close(ended)
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			close(waiting)
			_, _ = conn.Read(make([]byte, 1)) // until the plugin has ended
			_ = conn.Close()
		}()
		return waiting
	}
}

func TestCorrectPlugin(t *testing.T) {
	plugintest.Run(t, command(t, "none"))
}

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		fault string
		check string
		err   string
	}{
		{"always prints v1beta1", "prints v1 for a request in v1", `the request is in client.authentication.k8s.io/v1, the output in "client.authentication.k8s.io/v1beta1"`},
		{"always prints v1", "prints v1beta1 for a request in v1beta1", `the output in "client.authentication.k8s.io/v1"`},
		{"log on stdout", "prints v1 for a request in v1", "standard output does not begin with an ExecCredential"},
		{"text after the output", "prints v1 for a request in v1", "standard output has more than one ExecCredential"},
		{"another kind", "prints v1 for a request in v1", `kind is "Token"`},
		{"no status", "prints v1 for a request in v1", "the output has no status"},
		{"empty output", "prints v1 for a request in v1", "neither a token nor a client certificate"},
		{"newline in the token", "prints v1 for a request in v1", "the token has characters that are invalid in a header"},
		{"certificate without key", "prints v1 for a request in v1", "only one of client certificate and key"},
		{"invalid certificate", "prints v1 for a request in v1", "client certificate and key do not match"},
		{"expired", "prints v1 for a request in v1", "the credential expired at 2001-01-01T00:00:00Z"},
		{"expiry in seconds", "prints v1 for a request in v1", `expirationTimestamp is "1700000000"`},
		{"endless output", "prints v1 for a request in v1", "the output has"},
		{"token on stderr", "prints v1 for a request in v1", "standard error shows the credential's token, or contains it by chance"},
		{"own secret on stderr", "fails cleanly for an invalid request", "standard error shows a secret"},
		{"own secret in help", "prints help without a request", "the help shows a secret"},
		{"leaves a file", "prints v1 for a request in v1", `the run left "token.json" in the working directory`},
		{"leaves a process", "prints v1 for a request in v1", "the run left a process"},
		{"reads stdin", "does not wait for standard input", "the run did not end within 2s"},
		{"small buffer", "accepts a request of a hundred kilobytes", "it ended with exit code 1"},
		{"strict about fields", "ignores unknown fields of the request", "it ended with exit code 3"},
		{"one at a time", "runs many times concurrently", "it ended with exit code 1"},
		{"trace", "fails cleanly for an invalid request", "standard error shows a stack trace"},
		{"trace", "works or fails cleanly for an unexpected config", "standard error shows a stack trace"},
		{"error of two lines", "fails cleanly for an invalid request", "standard error has 2 lines, not one"},
		{"silent failure", "fails cleanly for an invalid request", "nothing on standard error"},
		{"error on stdout", "fails cleanly for an invalid request", "bytes on standard output"},
		{"failure with code 0", "fails cleanly for an invalid request", "it succeeded"},
		{"failure with code 255", "fails cleanly for an invalid request", "it ended with exit code 255, not with a code from 1 to 125"},
		{"accepts any request", "fails cleanly for an invalid request", "request that is truncated: it succeeded"},
		{"ignores write errors", "fails cleanly if standard output cannot be written", "it succeeded"},
		{"accepts any flag", "fails cleanly for an unknown flag", "it succeeded"},
		{"no help", "prints help without a request", "it ended with exit code 3"},
		{"help on stderr", "prints help without a request", "nothing on standard output"},
		{"ignores SIGTERM", "stops soon after SIGTERM", "the run did not end within 2s"},
		{"ignores SIGINT", "stops soon after SIGINT", "the run did not end within 2s"},
		{"trace at SIGINT", "stops soon after SIGINT", "standard error shows a stack trace"},
	} {
		t.Run(test.fault+": "+test.check, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			c := command(t, test.fault)
			switch test.fault {
			case "reads stdin", "ignores SIGTERM", "ignores SIGINT":
				c.Timeout = 2 * time.Second
			}
			err := plugintest.CheckOne(t.Context(), c, test.check)
			g.Expect(err).To(MatchError(ContainSubstring(test.err)))
			g.Expect(err.Error()).NotTo(ContainSubstring(token), "no credential is shown")
		})
	}
}

func TestShortTokenInHelpByChance(t *testing.T) {
	g := NewWithT(t)
	err := plugintest.CheckOne(t.Context(), command(t, "short token"), "prints help without a request", "prints v1 for a request in v1")
	g.Expect(err).To(MatchError("the help shows the credential's token, or contains it by chance: use a longer token in the test"))
}

func TestMissingPlugin(t *testing.T) {
	g := NewWithT(t)
	missing := plugintest.Command{Path: filepath.Join(t.TempDir(), "missing")}
	g.Expect(plugintest.CheckOne(t.Context(), missing, "prints help without a request")).To(MatchError(os.ErrNotExist))
}

func TestContextEnds(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g.Expect(plugintest.CheckOne(ctx, command(t, "none"), "prints v1 for a request in v1")).To(MatchError(context.Canceled))
}
