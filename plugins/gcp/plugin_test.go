// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/gcp"
)

const noConfig = "null"

// run runs the plugin for a cluster with the config.
func run(t *testing.T, config string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runFor(t, "https://34.1.2.3", config, args...)
}

func runFor(t *testing.T, server, config string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := gcp.New()
	p.SetRetryDelay(time.Millisecond)
	info := fmt.Sprintf(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
		"spec":{"cluster":{"server":%q,"config":%s},"interactive":false}}`, server, config)
	var out, errs bytes.Buffer
	code = plugin.Run(t.Context(), p, args, []string{"KUBERNETES_EXEC_INFO=" + info}, &out, &errs)
	return code, out.String(), errs.String()
}

// tokenIn returns the token and the expiry of the output.
func tokenIn(t *testing.T, stdout string) (token string, expiry time.Time) {
	t.Helper()
	var output struct {
		Status struct {
			Token               string    `json:"token"`
			ExpirationTimestamp time.Time `json:"expirationTimestamp"`
		} `json:"status"`
	}
	if err := json.Unmarshal([]byte(stdout), &output); err != nil {
		t.Fatal(err)
	}
	return output.Status.Token, output.Status.ExpirationTimestamp
}

func TestSources(t *testing.T) {
	for _, test := range []struct {
		name  string
		file  func(*cloud) map[string]any
		args  []string
		token string
	}{
		{
			name:  "the metadata server's default account, without a file",
			token: "metadata-default",
		},
		{
			name:  "--account chooses another account of the metadata server",
			args:  []string{"--account=" + robot},
			token: "metadata-" + robot,
		},
		{
			name:  "a service account key",
			file:  (*cloud).serviceAccountKey,
			token: "key-token",
		},
		{
			name:  "--account may be the account of the key",
			file:  (*cloud).serviceAccountKey,
			args:  []string{"--account=" + robot},
			token: "key-token",
		},
		{
			name:  "an external account",
			file:  func(c *cloud) map[string]any { return c.externalAccount("subject-secret") },
			token: "sts-token",
		},
		{
			name:  "an impersonated service account",
			file:  func(c *cloud) map[string]any { return c.impersonated(c.serviceAccountKey()) },
			token: "token-of-" + viewer,
		},
		{
			name:  "a user's refresh token",
			file:  (*cloud).authorizedUser,
			token: "user-token",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(t)
			if test.file != nil {
				c.use(test.file(c))
			}
			code, stdout, stderr := run(t, noConfig, test.args...)
			g.Expect(stderr).To(BeEmpty())
			g.Expect(code).To(Equal(plugin.ExitOK))
			token, expiry := tokenIn(t, stdout)
			g.Expect(token).To(Equal(test.token))
			g.Expect(expiry).To(BeTemporally("~", time.Now().Add(time.Hour), time.Minute), "the expiry of the token")
		})
	}
}

func TestGcloudFile(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(t)
	path := c.use(c.authorizedUser())
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	known := filepath.Join(os.Getenv("HOME"), ".config", "gcloud", "application_default_credentials.json")
	g.Expect(os.MkdirAll(filepath.Dir(known), 0o700)).To(Succeed())
	g.Expect(os.Rename(path, known)).To(Succeed())

	_, stdout, stderr := run(t, noConfig)
	g.Expect(stderr).To(BeEmpty())
	token, _ := tokenIn(t, stdout)
	g.Expect(token).To(Equal("user-token"))
}

func TestScopes(t *testing.T) {
	const prefix = "https://www.googleapis.com/auth/"
	for _, test := range []struct {
		name   string
		args   []string
		scopes string
	}{
		{"the default", nil, prefix + "cloud-platform," + prefix + "userinfo.email"},
		{"short names", []string{"--scopes=cloud-platform.read-only,email"}, prefix + "cloud-platform.read-only,email"},
		{"full names", []string{"--scopes=https://example.com/a"}, "https://example.com/a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(t)
			code, _, stderr := run(t, noConfig, test.args...)
			g.Expect(code).To(Equal(plugin.ExitOK), stderr)
			query := c.to(metadataPath)[0].query
			g.Expect(query).To(Equal("scopes=" + strings.NewReplacer(":", "%3A", "/", "%2F", ",", "%2C").Replace(test.scopes)))
		})
	}
}

func TestServers(t *testing.T) {
	for name, server := range map[string]string{
		"GKE":             "https://34.1.2.3",
		"GKE by DNS":      "https://gke-0123-456.europe-west1.gke.goog",
		"Connect Gateway": "https://connectgateway.googleapis.com/v1/projects/1/locations/global/gkeMemberships/c1",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			newCloud(t)
			code, stdout, stderr := runFor(t, server, noConfig)
			g.Expect(code).To(Equal(plugin.ExitOK), stderr)
			token, _ := tokenIn(t, stdout)
			g.Expect(token).To(Equal("metadata-default"))
		})
	}
}

func TestRetries(t *testing.T) {
	times := func(n int, f fault) []fault { return slices.Repeat([]fault{f}, n) }
	for _, test := range []struct {
		name     string
		metadata bool
		faults   []fault
		code     int
		requests int
		stderr   string
	}{
		{name: "429 is retried", faults: times(2, fault{status: 429}), requests: 3},
		{name: "500 is retried", faults: times(1, fault{status: 500}), requests: 2},
		{name: "503 is retried", faults: times(4, fault{status: 503}), requests: 5},
		{name: "a fifth 503 is a failure", faults: times(5, fault{status: 503}), requests: 5, code: plugin.ExitFailed, stderr: ": status 503\n"},
		{name: "400 is not retried", faults: times(1, fault{status: 400, body: `{"error":"invalid_grant","error_description":"No."}`}),
			requests: 1, code: plugin.ExitFailed, stderr: ": status 400: invalid_grant No.\n"},
		{name: "408 is not retried", faults: times(1, fault{status: 408}), requests: 1, code: plugin.ExitFailed, stderr: ": status 408\n"},
		{name: "Retry-After sets the delay", faults: times(1, fault{status: 429, retryAfter: "1"}), requests: 2},
		{name: "429 of the metadata server is retried", metadata: true, faults: times(2, fault{status: 429}), requests: 3},
		{name: "500 of the metadata server is retried", metadata: true, faults: times(1, fault{status: 500}), requests: 2},
		{name: "403 of the metadata server is not retried", metadata: true, faults: times(1, fault{status: 403, body: "not\nallowed"}),
			requests: 1, code: plugin.ExitFailed, stderr: ": status 403: not allowed\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(t)
			path := tokenPath
			if test.metadata {
				path = metadataPath
			} else {
				c.use(c.serviceAccountKey())
			}
			c.failFirst(test.faults...)
			start := time.Now()
			code, stdout, stderr := run(t, noConfig)
			g.Expect(stderr).To(HaveSuffix(test.stderr))
			g.Expect(code).To(Equal(test.code))
			g.Expect(stdout != "").To(Equal(code == plugin.ExitOK))
			g.Expect(c.to(path)).To(HaveLen(test.requests))
			if len(test.faults) > 0 && test.faults[0].retryAfter != "" {
				g.Expect(time.Since(start)).To(BeNumerically(">=", time.Second))
			}
		})
	}
}

func TestFailuresShowNoSecret(t *testing.T) {
	long := strings.Repeat("s3cret", 20)
	for _, test := range []struct {
		name   string
		file   func(*cloud) map[string]any
		text   string // of the file, instead of JSON
		fault  *fault
		args   []string
		code   int
		stderr string
	}{
		{
			name:   "the reason of an STS",
			file:   func(c *cloud) map[string]any { return c.externalAccount(long) },
			code:   plugin.ExitFailed,
			stderr: "status 400: invalid_grant The subject token is not known.",
		},
		{
			name:   "a server that repeats a token",
			file:   (*cloud).serviceAccountKey,
			fault:  &fault{status: 401, body: `{"error":{"status":"UNAUTHENTICATED","message":"bad ` + long + `"}}`},
			code:   plugin.ExitFailed,
			stderr: "status 401: UNAUTHENTICATED bad [redacted]",
		},
		{
			name:   "a server that responds with a page",
			file:   (*cloud).serviceAccountKey,
			fault:  &fault{status: 404, body: "<html>" + long},
			code:   plugin.ExitFailed,
			stderr: "status 404\n",
		},
		{
			name:   "a file that is not JSON",
			text:   `{"private_key": ` + long,
			code:   plugin.ExitFailed,
			stderr: "not a credentials file in JSON",
		},
		{
			name:   "a file of an unknown type",
			text:   `{"type":"` + long + `"}`,
			code:   plugin.ExitFailed,
			stderr: `type must be one of ["service_account" `,
		},
		{
			name:   "an invalid key",
			file:   func(c *cloud) map[string]any { f := c.serviceAccountKey(); f["private_key"] = long; return f },
			code:   plugin.ExitFailed,
			stderr: "of " + robot,
		},
		{
			name:   "a key of another account",
			file:   (*cloud).serviceAccountKey,
			args:   []string{"--account=" + viewer},
			code:   plugin.ExitFailed,
			stderr: "the key does not belong to account " + viewer + ", see --account",
		},
		{
			name:   "an account for a file without one",
			file:   (*cloud).authorizedUser,
			args:   []string{"--account=" + viewer},
			code:   plugin.ExitFailed,
			stderr: "--account cannot be used with type authorized_user",
		},
		{
			name:   "an account that the metadata server does not have",
			args:   []string{"--account=" + viewer},
			code:   plugin.ExitFailed,
			stderr: `it has no service account "` + viewer + `"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(t)
			switch {
			case test.file != nil:
				c.use(test.file(c))
			case test.text != "":
				g.Expect(os.WriteFile(c.use(nil), []byte(test.text), 0o600)).To(Succeed())
			}
			if test.fault != nil {
				c.failFirst(*test.fault)
			}
			code, stdout, stderr := run(t, noConfig, test.args...)
			g.Expect(stderr).To(ContainSubstring(test.stderr))
			g.Expect(stderr).NotTo(ContainSubstring("s3cret"))
			g.Expect(strings.Count(stderr, "\n")).To(Equal(1))
			g.Expect(code).To(Equal(test.code))
			g.Expect(stdout).To(BeEmpty())
		})
	}
}

func TestMissingFile(t *testing.T) {
	g := NewWithT(t)
	newCloud(t)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/does/not/exist.json")
	code, _, stderr := run(t, noConfig)
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(Equal("mc-credential-gcp: GOOGLE_APPLICATION_CREDENTIALS: open /does/not/exist.json: no such file or directory\n"))
}

func TestTimeout(t *testing.T) {
	for name, file := range map[string]func(*cloud) map[string]any{
		"metadata server":     nil,
		"service account key": (*cloud).serviceAccountKey,
		"STS":                 func(c *cloud) map[string]any { return c.externalAccount("subject-secret") },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(t)
			if file != nil {
				c.use(file(c))
			}
			c.fallSilent()
			start := time.Now()
			code, _, stderr := run(t, noConfig, "--timeout=300ms")
			g.Expect(code).To(Equal(plugin.ExitTimedOut))
			g.Expect(stderr).To(HavePrefix("mc-credential-gcp: timed out after 300ms, see --timeout"))
			g.Expect(time.Since(start)).To(BeNumerically("<", 5*time.Second))
		})
	}
}

func TestServerDown(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(t)
	file := c.serviceAccountKey()
	file["token_uri"] = "http://127.0.0.1:1/token"
	c.use(file)
	code, _, stderr := run(t, noConfig)
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(Equal("mc-credential-gcp: 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused\n"))
}
