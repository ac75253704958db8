// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/gcp"
)

func choosing(account string) string {
	return fmt.Sprintf(`{"impersonateServiceAccount":%q}`, account)
}

func TestImpersonation(t *testing.T) {
	for _, test := range []struct {
		name   string
		config string
		args   []string
		token  string // of the source, if no account is impersonated
		path   string
		body   string
		quota  string
	}{
		{
			name:   "the flag sets the account",
			config: noConfig,
			args:   []string{"--impersonate-service-account=" + viewer},
			path:   viewer,
			body: `{"scope":["https://www.googleapis.com/auth/cloud-platform","https://www.googleapis.com/auth/userinfo.email"],
				"lifetime":"3600s"}`,
		},
		{
			name:   "delegates come first, separated by commas",
			config: noConfig,
			args:   []string{"--impersonate-service-account=" + middle + "," + viewer, "--scopes=cloud-platform"},
			path:   viewer,
			body: `{"delegates":["projects/-/serviceAccounts/` + middle + `"],
				"scope":["https://www.googleapis.com/auth/cloud-platform"],"lifetime":"3600s"}`,
		},
		{
			name:   "a profile chooses one that a flag allows, with its delegates",
			config: choosing(viewer),
			args:   []string{"--allowed-service-account=" + robot, "--allowed-service-account=" + middle + "," + viewer, "--scopes=email"},
			path:   viewer,
			body:   `{"delegates":["projects/-/serviceAccounts/` + middle + `"],"scope":["email"],"lifetime":"3600s"}`,
		},
		{
			name:   "a profile may choose the default",
			config: choosing(viewer),
			args:   []string{"--impersonate-service-account=" + viewer, "--scopes=email"},
			path:   viewer,
			body:   `{"scope":["email"],"lifetime":"3600s"}`,
		},
		{
			name:   "a profile that chooses none gets the default",
			config: `{}`,
			args:   []string{"--impersonate-service-account=" + viewer, "--allowed-service-account=" + robot, "--scopes=email"},
			path:   viewer,
			body:   `{"scope":["email"],"lifetime":"3600s"}`,
		},
		{
			name:   "without a default a profile gets the token of the source",
			config: `{}`,
			args:   []string{"--allowed-service-account=" + robot},
			token:  "metadata-default",
		},
		{
			name:   "the flag sets the quota project",
			config: noConfig,
			args:   []string{"--impersonate-service-account=" + viewer, "--quota-project=p9", "--scopes=email"},
			path:   viewer,
			body:   `{"scope":["email"],"lifetime":"3600s"}`,
			quota:  "p9",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(t)
			code, stdout, stderr := run(t, test.config, append(test.args, "--iam-credentials-url="+c.URL+"/")...)
			g.Expect(stderr).To(BeEmpty())
			g.Expect(code).To(Equal(plugin.ExitOK))
			token, expiry := tokenIn(t, stdout)
			sent := c.to(iamPath)
			if test.token != "" {
				g.Expect(token).To(Equal(test.token))
				g.Expect(sent).To(BeEmpty())
				return
			}
			g.Expect(token).To(Equal("token-of-" + test.path))
			g.Expect(expiry).To(BeTemporally("==", c.expiry))
			g.Expect(sent).To(HaveLen(1))
			g.Expect(sent[0].path).To(Equal(iamPath + test.path + ":generateAccessToken"))
			g.Expect(sent[0].body).To(MatchJSON(test.body))
			g.Expect(sent[0].header.Get("Authorization")).To(Equal("Bearer metadata-default"))
			g.Expect(sent[0].header.Get("X-Goog-User-Project")).To(Equal(test.quota))
			g.Expect(c.to(metadataPath)[0].query).To(HaveSuffix("cloud-platform"), "the scope that impersonation needs")
		})
	}
}

func TestDefaultQuotaProject(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(t)
	c.use(c.authorizedUser())
	args := []string{"--impersonate-service-account=" + viewer, "--iam-credentials-url=" + c.URL}
	_, _, stderr := run(t, noConfig, args...)
	g.Expect(stderr).To(BeEmpty())
	t.Setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "p8")
	_, _, stderr = run(t, noConfig, args...)
	g.Expect(stderr).To(BeEmpty())
	sent := c.to(iamPath)
	g.Expect(sent[0].header.Get("X-Goog-User-Project")).To(Equal("p7"), "that of the file")
	g.Expect(sent[1].header.Get("X-Goog-User-Project")).To(Equal("p8"), "that of the environment")
}

func TestImpersonationIsRetried(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(t)
	c.use(c.serviceAccountKey())
	run := func() (int, string, string) {
		return run(t, noConfig, "--impersonate-service-account="+viewer, "--iam-credentials-url="+c.URL)
	}
	ok := fault{status: 200, body: `{"access_token":"key-token","expires_in":3600}`}
	c.failFirst(ok, fault{status: 503}, fault{status: 429})
	code, _, stderr := run()
	g.Expect(code).To(Equal(plugin.ExitOK), stderr)
	g.Expect(c.to(iamPath)).To(HaveLen(3))
	for _, sent := range c.to(iamPath) {
		g.Expect(sent.body).To(ContainSubstring(`"lifetime":"3600s"`), "each time")
	}

	c.failFirst(ok, fault{status: 403, body: `{"error":{"code":403,"message":"Permission denied.","status":"PERMISSION_DENIED"}}`})
	code, _, stderr = run()
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(HaveSuffix(": status 403: PERMISSION_DENIED Permission denied.\n"))
	g.Expect(c.to(iamPath)).To(HaveLen(4))
}

func TestRejectedConfigs(t *testing.T) {
	for _, test := range []struct {
		name   string
		config string
		args   []string
		code   int
		stderr string
	}{
		{
			name:   "an account that no flag allows",
			config: choosing(viewer),
			args:   []string{"--allowed-service-account=" + robot},
			code:   plugin.ExitFailed,
			stderr: "the profile must not impersonate " + viewer + ", see --allowed-service-account",
		},
		{
			name:   "a delegate of an account that a flag allows",
			config: choosing(middle),
			args:   []string{"--allowed-service-account=" + middle + "," + viewer},
			code:   plugin.ExitFailed,
			stderr: "the profile must not impersonate " + middle,
		},
		{
			name:   "a chain of its own",
			config: choosing(middle + "," + viewer),
			args:   []string{"--allowed-service-account=" + viewer},
			code:   plugin.ExitBadRequest,
			stderr: "impersonateServiceAccount is not a service account",
		},
		{
			name:   "a path",
			config: choosing("../../x"),
			code:   plugin.ExitBadRequest,
			stderr: "impersonateServiceAccount is not a service account",
		},
		{
			name:   "a credentials file",
			config: `{"credentialsFile":"/etc/key.json"}`,
			code:   plugin.ExitBadRequest,
			stderr: `unknown field "credentialsFile"`,
		},
		{
			name:   "credentials",
			config: `{"type":"external_account","token_url":"https://example.com"}`,
			code:   plugin.ExitBadRequest,
			stderr: `unknown field "type"`,
		},
		{
			name:   "scopes",
			config: `{"scopes":["x"]}`,
			code:   plugin.ExitBadRequest,
			stderr: `unknown field "scopes"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newCloud(t)
			code, stdout, stderr := run(t, test.config, append(test.args, "--iam-credentials-url="+c.URL)...)
			g.Expect(code).To(Equal(test.code))
			g.Expect(stderr).To(ContainSubstring(test.stderr))
			g.Expect(stdout).To(BeEmpty())
			g.Expect(c.to("/")).To(BeEmpty(), "no request was sent")
		})
	}
}

func TestWrongFlags(t *testing.T) {
	for _, arg := range []string{
		"--impersonate-service-account=",
		"--impersonate-service-account=a@b,",
		"--impersonate-service-account=a/b",
		"--allowed-service-account=*",
		"--account=../x",
		"--scopes=a b",
		"--scopes=",
		"--universe-domain=example.com/x",
		"--universe-domain=localhost",
		"--iam-credentials-url=iam.example.com",
		"--iam-credentials-url=https://me:secret@iam.example.com",
	} {
		t.Run(arg, func(t *testing.T) {
			g := NewWithT(t)
			newCloud(t)
			code, _, stderr := run(t, noConfig, arg)
			g.Expect(code).To(Equal(plugin.ExitUsage))
			g.Expect(stderr).To(ContainSubstring("invalid value"))
		})
	}
}

func TestExplain(t *testing.T) {
	g := NewWithT(t)
	c := newCloud(t)
	file := c.serviceAccountKey()
	file["universe_domain"] = "example.goog"
	path := c.use(file)
	code, stdout, stderr := run(t, choosing(viewer), "--explain", "--allowed-service-account="+middle+","+viewer,
		"--cache-dir=/var/cache/x", "--quota-project=p9", "--scopes=email")
	g.Expect(stderr).To(BeEmpty())
	g.Expect(code).To(Equal(plugin.ExitOK))
	g.Expect(stdout).To(HaveSuffix("would:\n" +
		"- look for a token in /var/cache/x\n" +
		"- get an access token from the service_account file " + path + " of " + robot + "\n" +
		"- impersonate " + viewer + " at https://iamcredentials.example.goog via " + middle + ", billed to project p9\n" +
		"- scopes are email\n"))
	g.Expect(stdout).NotTo(ContainSubstring("PRIVATE KEY"))

	code, _, stderr = run(t, choosing(viewer), "--explain")
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(ContainSubstring("the profile must not impersonate"))

	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	_, stdout, _ = run(t, noConfig, "--explain", "--account="+robot, "--universe-domain=example.goog",
		"--impersonate-service-account="+viewer)
	g.Expect(stdout).To(ContainSubstring("- get an access token from the metadata server at " +
		c.Listener.Addr().String() + " for " + robot + "\n"))
	g.Expect(stdout).To(ContainSubstring("https://iamcredentials.example.goog\n"))
	g.Expect(c.to("/")).To(BeEmpty(), "no request was sent")
}

func FuzzConfig(f *testing.F) {
	f.Add(choosing(viewer))
	f.Add(choosing(robot))
	f.Add(`{"impersonateServiceAccount":["` + viewer + `"]}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, config string) {
		// The file does not exist, so that also an allowed config fails.
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/does/not/exist")
		p := gcp.New()
		p.AllowedImpersonations = []gcp.Impersonation{{Account: viewer}}
		_, err := p.Credential(t.Context(), plugin.Request{Cluster: &plugin.Cluster{Config: []byte(config)}})
		if err == nil {
			t.Error("it succeeded")
		}
	})
}
