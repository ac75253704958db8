// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest_test

import (
	"context"
	"encoding/json"
	"errors"
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

// The test binary is also the plugin: run with this variable, it has the fault
// that is named there.
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
			"GORACE=atexit_sleep_ms=0", // the race detector would make each run a second longer
		},
		Cluster: &plugin.Cluster{Server: "https://c1:6443", Config: json.RawMessage(`{"name":"c1"}`)},
		Secrets: []string{"own-secret"},
		Stall:   stall(t),
	}
}

// stall lets the plugin connect to a server that never says anything.
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

func TestAGoodPluginPasses(t *testing.T) {
	plugintest.Run(t, command(t, "none"))
}

func TestFaultsAreFound(t *testing.T) {
	for _, test := range []struct {
		fault string
		check string
		err   string
	}{
		{"answers in v1beta1 always", "answers in v1 when asked in v1", `asked in client.authentication.k8s.io/v1, it answered in "client.authentication.k8s.io/v1beta1"`},
		{"answers in v1 always", "answers in v1beta1 when asked in v1beta1", "it answered in"},
		{"log on stdout", "answers in v1 when asked in v1", "standard output does not begin with an ExecCredential"},
		{"text after the answer", "answers in v1 when asked in v1", "standard output has more than the answer"},
		{"another kind", "answers in v1 when asked in v1", `kind is "Token"`},
		{"no status", "answers in v1 when asked in v1", "the answer has no status"},
		{"empty answer", "answers in v1 when asked in v1", "neither a token nor a client certificate"},
		{"newline in the token", "answers in v1 when asked in v1", "the token has characters that no header may have"},
		{"certificate without key", "answers in v1 when asked in v1", "only one of client certificate and key"},
		{"certificate that is none", "answers in v1 when asked in v1", "client certificate and key do not belong together"},
		{"expired", "answers in v1 when asked in v1", "the credential expired at 2001-01-01T00:00:00Z"},
		{"expiry in seconds", "answers in v1 when asked in v1", `expirationTimestamp is "1700000000"`},
		{"endless answer", "answers in v1 when asked in v1", "the answer has"},
		{"token on stderr", "answers in v1 when asked in v1", "standard error shows the credential's token, or contains it by chance"},
		{"own secret on stderr", "fails cleanly when the request is garbage", "standard error shows a secret"},
		{"own secret in the help", "prints a help without a request", "the help shows a secret"},
		{"leaves a file", "answers in v1 when asked in v1", `the run left "token.json" in the working directory`},
		{"leaves a process", "answers in v1 when asked in v1", "the run left a process behind"},
		{"reads stdin", "does not wait for standard input", "the run did not end within 2s"},
		{"small buffer", "takes a request of a hundred kilobytes", "it ended with exit code 1"},
		{"strict about fields", "ignores fields of later versions", "it ended with exit code 3"},
		{"one at a time", "runs many times at once", "it ended with exit code 1"},
		{"trace", "fails cleanly when the request is garbage", "standard error shows a stack trace"},
		{"trace", "answers or fails cleanly for a config that it cannot know", "standard error shows a stack trace"},
		{"error of two lines", "fails cleanly when the request is garbage", "standard error has 2 lines, not one"},
		{"silent failure", "fails cleanly when the request is garbage", "without a word on standard error"},
		{"error on stdout", "fails cleanly when the request is garbage", "bytes on standard output"},
		{"failure with code 0", "fails cleanly when the request is garbage", "it succeeded"},
		{"failure with code 255", "fails cleanly when the request is garbage", "it ended with exit code 255, not with a code from 1 to 125"},
		{"answers anything", "fails cleanly when the request is garbage", "request that is half a request: it succeeded"},
		{"does not notice that nothing was written", "fails cleanly when standard output cannot be written", "it succeeded"},
		{"takes any flag", "fails cleanly when a flag is unknown", "it succeeded"},
		{"no help", "prints a help without a request", "it ended with exit code 3"},
		{"help on stderr", "prints a help without a request", "there is nothing on standard output"},
		{"ignores SIGTERM", "ends soon after SIGTERM", "the run did not end within 2s"},
		{"ignores SIGINT", "ends soon after SIGINT", "the run did not end within 2s"},
		{"trace at SIGINT", "ends soon after SIGINT", "standard error shows a stack trace"},
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

func TestAShortTokenMayBeInTheHelpByChance(t *testing.T) {
	g := NewWithT(t)
	err := plugintest.CheckOne(t.Context(), command(t, "short token"), "prints a help without a request", "answers in v1 when asked in v1")
	g.Expect(err).To(MatchError("the help shows the credential's token, or contains it by chance: use a longer token in the test"))
}

func TestAPluginThatCannotBeRun(t *testing.T) {
	g := NewWithT(t)
	faults := plugintest.Check(t.Context(), plugintest.Command{Path: filepath.Join(t.TempDir(), "missing")})
	g.Expect(faults).NotTo(BeEmpty())
	for _, fault := range faults {
		g.Expect(fault.Err).To(MatchError(os.ErrNotExist))
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	faults := plugintest.Check(ctx, command(t, "none"))
	g.Expect(faults).To(HaveLen(1))
	g.Expect(faults[0].String()).To(HaveSuffix(": not finished: enough"))
}
