// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// fake is a plugin whose credential is a function.
type fake struct {
	credential func(ctx context.Context, request plugin.Request) (*plugin.Credential, error)
	audience   string
	wait       time.Duration
}

func (f *fake) Name() string        { return "fake" }
func (f *fake) Version() string     { return "v1.2.3" }
func (f *fake) Description() string { return "Prints what the test wants." }
func (f *fake) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&f.audience, "audience", "", "the `audience`")
	flags.DurationVar(&f.wait, "wait", 0, "how `long` to wait")
}
func (f *fake) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	return f.credential(ctx, request)
}

func returning(c *plugin.Credential, err error) *fake {
	return &fake{credential: func(context.Context, plugin.Request) (*plugin.Credential, error) { return c, err }}
}

func run(ctx context.Context, p plugin.Plugin, args []string, env ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = plugin.Run(ctx, p, args, env, &out, &errs)
	return code, out.String(), errs.String()
}

const (
	v1      = "client.authentication.k8s.io/v1"
	v1beta1 = "client.authentication.k8s.io/v1beta1"
)

func info(apiVersion, spec string) string {
	return fmt.Sprintf(`KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":%q,"spec":%s}`, apiVersion, spec)
}

func TestOutputVersion(t *testing.T) {
	expiry := time.Date(2030, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	for _, version := range []string{v1, v1beta1} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			p := returning(&plugin.Credential{Token: " t1\n", Expiry: expiry}, nil)
			code, stdout, stderr := run(t.Context(), p, nil, info(version, `{"interactive":false}`))
			g.Expect(code).To(Equal(plugin.ExitOK))
			g.Expect(stderr).To(BeEmpty())
			g.Expect(stdout).To(MatchJSON(fmt.Sprintf(`{"kind":"ExecCredential","apiVersion":%q,"spec":{},
				"status":{"token":"t1","expirationTimestamp":"2030-01-02T02:04:05Z"}}`, version)))
		})
	}
}

func TestRequestCluster(t *testing.T) {
	g := NewWithT(t)
	var got plugin.Request
	certificate, key := newCertificate(t, time.Now().Add(time.Hour))
	p := &fake{credential: func(_ context.Context, request plugin.Request) (*plugin.Credential, error) {
		got = request
		return &plugin.Credential{ClientCertificate: certificate, ClientKey: key}, nil
	}}
	code, stdout, _ := run(t.Context(), p, []string{"--audience=a"}, info(v1, `{"cluster":{
		"server":"https://c1:6443","tls-server-name":"c1.example.com","certificate-authority-data":"Q0E=",
		"proxy-url":"http://proxy:3128","disable-compression":true,"config":{"name":"c1"}},"interactive":false}`))
	g.Expect(code).To(Equal(plugin.ExitOK))
	printed, err := json.Marshal(map[string]string{"clientCertificateData": string(certificate), "clientKeyData": string(key)})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stdout).To(ContainSubstring(strings.Trim(string(printed), "{}")))
	g.Expect(p.audience).To(Equal("a"))
	g.Expect(got.Cluster).To(Equal(&plugin.Cluster{
		Server:             "https://c1:6443",
		TLSServerName:      "c1.example.com",
		CAData:             []byte("CA"),
		ProxyURL:           "http://proxy:3128",
		DisableCompression: true,
		Config:             json.RawMessage(`{"name":"c1"}`),
	}))

	code, _, _ = run(t.Context(), p, []string{"--wait=90s"}, info(v1, "{}"))
	g.Expect(code).To(Equal(plugin.ExitOK))
	g.Expect(p.wait).To(Equal(90 * time.Second))
}

func TestFailures(t *testing.T) {
	good := info(v1, `{"cluster":{"server":"https://c1","config":{"name":"c1"}}}`)
	decoding := &fake{credential: func(_ context.Context, request plugin.Request) (*plugin.Credential, error) {
		_, err := plugin.DecodeConfig[struct {
			Name int `json:"name"`
		}](request)
		return nil, err
	}}
	for _, test := range []struct {
		name   string
		plugin *fake
		args   []string
		env    string
		code   int
		stderr string
	}{
		{
			name:   "a plugin's error is shown on one line",
			plugin: returning(nil, errors.New("no such\n\tSecret")),
			env:    good,
			code:   plugin.ExitFailed,
			stderr: "fake: no such Secret\n",
		},
		{
			name:   "a flag that the plugin rejects is a usage error",
			plugin: returning(nil, fmt.Errorf("%w: --hub must be given", plugin.ErrUsage)),
			env:    good,
			code:   plugin.ExitUsage,
			stderr: "fake: wrong flags: --hub must be given\n",
		},
		{
			name:   "a duration without a unit is a usage error",
			plugin: returning(nil, nil),
			args:   []string{"--timeout=5"},
			env:    good,
			code:   plugin.ExitUsage,
			stderr: "fake: invalid value \"5\" for flag -timeout: 5 is not a duration such as 25s, see --help\n",
		},
		{
			name:   "a duration flag of the plugin gets the same check",
			plugin: returning(nil, nil),
			args:   []string{"--wait", "long"},
			env:    good,
			code:   plugin.ExitUsage,
			stderr: "fake: invalid value \"long\" for flag -wait: long is not a duration such as 25s, see --help\n",
		},
		{
			name:   "an unknown flag is a usage error",
			plugin: returning(nil, nil),
			args:   []string{"--nope"},
			env:    good,
			code:   plugin.ExitUsage,
			stderr: "fake: flag provided but not defined: -nope, see --help\n",
		},
		{
			name:   "an argument that is not a flag is a usage error",
			plugin: returning(nil, nil),
			args:   []string{"get"},
			env:    good,
			code:   plugin.ExitUsage,
			stderr: "fake: unexpected argument \"get\", see --help\n",
		},
		{
			name:   "a missing request",
			plugin: returning(nil, nil),
			env:    "OTHER=1",
			code:   plugin.ExitBadRequest,
			stderr: "fake: bad request: KUBERNETES_EXEC_INFO is not set: Kubernetes clients run this program, see --help\n",
		},
		{
			name:   "a request that is not JSON",
			plugin: returning(nil, nil),
			env:    "KUBERNETES_EXEC_INFO=hello",
			code:   plugin.ExitBadRequest,
			stderr: "fake: bad request: KUBERNETES_EXEC_INFO: invalid character 'h' looking for beginning of value\n",
		},
		{
			name:   "a request of another kind",
			plugin: returning(nil, nil),
			env:    `KUBERNETES_EXEC_INFO={"kind":"Pod"}`,
			code:   plugin.ExitBadRequest,
			stderr: "fake: bad request: KUBERNETES_EXEC_INFO: kind is \"Pod\", not ExecCredential\n",
		},
		{
			name:   "a request in an old version",
			plugin: returning(nil, nil),
			env:    info("client.authentication.k8s.io/v1alpha1", "{}"),
			code:   plugin.ExitBadRequest,
			stderr: "fake: bad request: KUBERNETES_EXEC_INFO: apiVersion is \"client.authentication.k8s.io/v1alpha1\", must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1\n",
		},
		{
			name:   "a config with a value of a wrong type",
			plugin: decoding,
			env:    good,
			code:   plugin.ExitBadRequest,
			stderr: "fake: bad request: config of the cluster: field \"name\" must not be of type string\n",
		},
		{
			name:   "a config with an unknown field",
			plugin: decoding,
			env:    info(v1, `{"cluster":{"server":"https://c1","config":{"nam":1}}}`),
			code:   plugin.ExitBadRequest,
			stderr: "fake: bad request: config of the cluster: unknown field \"nam\"\n",
		},
		{
			name:   "a cluster without a config",
			plugin: decoding,
			env:    info(v1, `{"cluster":{"server":"https://c1","config":null}}`),
			code:   plugin.ExitBadRequest,
			stderr: "fake: bad request: the cluster has no config for the plugin: its profile lacks the extension client.authentication.k8s.io/exec\n",
		},
		{
			name:   "no cluster information",
			plugin: decoding,
			env:    info(v1, `{"interactive":false}`),
			code:   plugin.ExitBadRequest,
			stderr: "fake: bad request: no cluster information: provideClusterInfo must be set\n",
		},
		{
			name:   "an empty credential",
			plugin: returning(&plugin.Credential{Token: " \n"}, nil),
			env:    good,
			code:   plugin.ExitFailed,
			stderr: "fake: the credential is empty\n",
		},
		{
			name:   "a certificate without a key",
			plugin: returning(&plugin.Credential{Token: "t", ClientCertificate: []byte("c")}, nil),
			env:    good,
			code:   plugin.ExitFailed,
			stderr: "fake: the credential has only one of client certificate and key\n",
		},
		{
			name:   "neither a credential nor an error",
			plugin: returning(nil, nil),
			env:    good,
			code:   plugin.ExitFailed,
			stderr: "fake: internal error: no credential and no error\n",
		},
		{
			name: "a panic shows no stack and no value",
			plugin: &fake{credential: func(context.Context, plugin.Request) (*plugin.Credential, error) {
				panic("token t1")
			}},
			env:    good,
			code:   plugin.ExitFailed,
			stderr: "fake: internal error: panic of type string\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			code, stdout, stderr := run(t.Context(), test.plugin, test.args, test.env)
			g.Expect(stderr).To(Equal(test.stderr))
			g.Expect(stdout).To(BeEmpty())
			g.Expect(code).To(Equal(test.code))
		})
	}
}

func TestInterruption(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := &fake{credential: func(ctx context.Context, _ plugin.Request) (*plugin.Credential, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	code, stdout, stderr := run(ctx, p, nil, info(v1, "{}"))
	g.Expect(code).To(Equal(plugin.ExitInterrupted))
	g.Expect(stdout).To(BeEmpty())
	g.Expect(stderr).To(Equal("fake: interrupted: context canceled\n"))
}

func TestHelpAndVersion(t *testing.T) {
	g := NewWithT(t)
	code, stdout, stderr := run(t.Context(), returning(nil, nil), []string{"--help"})
	g.Expect(code).To(Equal(plugin.ExitOK))
	g.Expect(stderr).To(BeEmpty())
	for _, part := range []string{
		"Usage:\n  fake [flags]", "Prints what the test wants.", "--audience audience", "0 for no limit (default 25s)", "-h, --help", "Exit codes:",
		"Examples:\n  # Print what the plugin would do", "'{\"kind\":\"ExecCredential\"", "fake --explain\n",
	} {
		g.Expect(stdout).To(ContainSubstring(part))
	}
	g.Expect(stdout).NotTo(ContainSubstring("(default 0s)"))
	for _, help := range []string{"-help", "-h"} {
		_, same, _ := run(t.Context(), returning(nil, nil), []string{help})
		g.Expect(same).To(Equal(stdout))
	}
	code, stdout, _ = run(t.Context(), returning(nil, nil), []string{"--version"})
	g.Expect(code).To(Equal(plugin.ExitOK))
	g.Expect(stdout).To(Equal("fake v1.2.3\n"))
}

func TestCredentialFormatShowsNoSecret(t *testing.T) {
	c := plugin.Credential{Token: "s3cret", ClientCertificate: []byte("s3cret"), ClientKey: []byte("s3cret")}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{c, &c, []plugin.Credential{c}, struct{ C *plugin.Credential }{&c}} {
			if printed := fmt.Sprintf(format, value); strings.Contains(printed, "s3cret") || strings.Contains(printed, "733363726574") {
				t.Errorf("%s of %T shows the secret: %s", format, value, printed)
			}
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(`{"kind":"ExecCredential","apiVersion":"` + v1 + `","spec":{"cluster":{"server":"https://c1","config":{"name":"c1"}}}}`)
	f.Add(`{"kind":"ExecCredential","apiVersion":"` + v1beta1 + `","spec":{"cluster":{"config":[1] }}}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, request string) {
		p := &fake{credential: func(_ context.Context, request plugin.Request) (*plugin.Credential, error) {
			config, err := plugin.DecodeConfig[struct {
				Name string `json:"name"`
			}](request)
			return &plugin.Credential{Token: "token-of-" + strconv.QuoteToASCII(strings.ReplaceAll(config.Name, " ", ""))}, err
		}}
		code, stdout, stderr := run(t.Context(), p, nil, "KUBERNETES_EXEC_INFO="+request)
		switch code {
		case plugin.ExitOK:
			if !json.Valid([]byte(stdout)) || stderr != "" {
				t.Errorf("stdout %q, stderr %q", stdout, stderr)
			}
		case plugin.ExitBadRequest:
			if stdout != "" || strings.Count(stderr, "\n") != 1 {
				t.Errorf("stdout %q, stderr %q", stdout, stderr)
			}
		default:
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
}
