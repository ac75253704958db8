// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// explaining is a plugin that implements Explainer.
type explaining struct {
	*fake
	steps []string
	err   error
}

func (e *explaining) Explain(context.Context, plugin.Request) ([]string, error) {
	return e.steps, e.err
}

// never is a plugin whose Credential must not be called.
func never(t *testing.T) *fake {
	return &fake{credential: func(context.Context, plugin.Request) (*plugin.Credential, error) {
		t.Error("Credential was called")
		return nil, errors.New("called")
	}}
}

func TestExplain(t *testing.T) {
	full := info(v1beta1, `{"cluster":{"server":"https://me:s3cret@c1:6443","config":{"name":"s3cret","key":"s3cret"}}}`)
	for _, test := range []struct {
		name   string
		plugin func(*fake) plugin.Plugin
		args   []string
		env    string
		stdout string
		stderr string
		code   int
	}{
		{
			name: "the request, then the plugin's steps",
			plugin: func(f *fake) plugin.Plugin {
				return &explaining{fake: f, steps: []string{"ask the hub\n for a Secret", "print its token"}}
			},
			args: []string{"--explain", "--audience=s3cret"},
			env:  full,
			stdout: "fake v1.2.3\nrequest: client.authentication.k8s.io/v1beta1\nserver: https://me:xxxxx@c1:6443\n" +
				"config: with key, name\nflags: --audience\nwould:\n- ask the hub for a Secret\n- print its token\n",
		},
		{
			name:   "the request alone, for a plugin that is no Explainer",
			plugin: func(f *fake) plugin.Plugin { return f },
			args:   []string{"--explain"},
			env:    info(v1, `{"cluster":{"server":"https://c1","config":[1]}}`),
			stdout: "fake v1.2.3\nrequest: client.authentication.k8s.io/v1\nserver: https://c1\nconfig: not an object\n" +
				"flags: none\nwould:\n- obtain a credential (the plugin gives no details)\n",
		},
		{
			name:   "cluster information is optional",
			plugin: func(f *fake) plugin.Plugin { return &explaining{fake: f} },
			args:   []string{"--explain"},
			env:    info(v1, `{}`),
			stdout: "fake v1.2.3\nrequest: client.authentication.k8s.io/v1, without cluster information\nflags: none\n",
		},
		{
			name:   "the request is optional",
			plugin: func(f *fake) plugin.Plugin { return &explaining{fake: f} },
			args:   []string{"--explain"},
			env:    "OTHER=1",
			stdout: "fake v1.2.3\nrequest: none, KUBERNETES_EXEC_INFO is not set\nflags: none\n",
		},
		{
			name: "a request that would be refused has the same exit code",
			plugin: func(f *fake) plugin.Plugin {
				return &explaining{fake: f, steps: []string{"ask the hub"}, err: errors.New("namespace x is not allowed")}
			},
			args:   []string{"--explain"},
			env:    info(v1, `{"cluster":{"server":"https://c1","config":{}}}`),
			stdout: "fake v1.2.3\nrequest: client.authentication.k8s.io/v1\nserver: https://c1\nconfig: empty\nflags: none\nwould:\n- ask the hub\n",
			stderr: "fake: namespace x is not allowed\n",
			code:   plugin.ExitFailed,
		},
		{
			name:   "a bad request",
			plugin: func(f *fake) plugin.Plugin { return &explaining{fake: f} },
			args:   []string{"--explain"},
			env:    "KUBERNETES_EXEC_INFO={}",
			stderr: "fake: bad request: KUBERNETES_EXEC_INFO: kind is \"\", not ExecCredential\n",
			code:   plugin.ExitBadRequest,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			code, stdout, stderr := run(t.Context(), test.plugin(never(t)), test.args, test.env)
			g.Expect(stdout).To(Equal(test.stdout))
			g.Expect(stderr).To(Equal(test.stderr))
			g.Expect(code).To(Equal(test.code))
		})
	}
}

func TestTimeout(t *testing.T) {
	obeying := func(ctx context.Context, _ plugin.Request) (*plugin.Credential, error) {
		<-ctx.Done()
		return nil, errors.New("the hub did not respond")
	}
	for _, test := range []struct {
		name       string
		credential func(context.Context, plugin.Request) (*plugin.Credential, error)
		args       []string
		code       int
		stderr     string
		after      time.Duration
	}{
		{
			name:       "25 s by default, with the plugin's error",
			credential: obeying,
			code:       plugin.ExitTimedOut,
			stderr:     "fake: timed out after 25s, see --timeout: the hub did not respond\n",
			after:      25 * time.Second,
		},
		{
			name:       "the flag sets it",
			credential: obeying,
			args:       []string{"--timeout=3s"},
			code:       plugin.ExitTimedOut,
			stderr:     "fake: timed out after 3s, see --timeout: the hub did not respond\n",
			after:      3 * time.Second,
		},
		{
			name: "0 is no limit",
			credential: func(ctx context.Context, _ plugin.Request) (*plugin.Credential, error) {
				time.Sleep(time.Hour)
				return &plugin.Credential{Token: "t1"}, ctx.Err()
			},
			args:  []string{"--timeout=0"},
			after: time.Hour,
		},
		{
			name: "a plugin that ignores its context gets one more second",
			credential: func(context.Context, plugin.Request) (*plugin.Credential, error) {
				time.Sleep(time.Minute)
				return &plugin.Credential{Token: "t1"}, nil
			},
			code:   plugin.ExitTimedOut,
			stderr: "fake: timed out after 25s, see --timeout: context deadline exceeded\n",
			after:  26 * time.Second,
		},
		{
			name: "a credential obtained in that second is printed",
			credential: func(context.Context, plugin.Request) (*plugin.Credential, error) {
				time.Sleep(25*time.Second + grace/2)
				return &plugin.Credential{Token: "t1"}, nil
			},
			after: 25*time.Second + grace/2,
		},
		{
			name:       "a negative time",
			credential: obeying,
			args:       []string{"--timeout=-1s"},
			code:       plugin.ExitUsage,
			stderr:     "fake: --timeout must not be negative, see --help\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				start := time.Now()
				code, stdout, stderr := run(t.Context(), &fake{credential: test.credential}, test.args, info(v1, "{}"))
				g.Expect(time.Since(start)).To(Equal(test.after))
				g.Expect(stderr).To(Equal(test.stderr))
				g.Expect(code).To(Equal(test.code))
				g.Expect(stdout != "").To(Equal(code == plugin.ExitOK))
				time.Sleep(time.Hour) // until all goroutines have ended
			})
		})
	}
}

// grace is how long a plugin may take to return after its context ended.
const grace = time.Second

func TestInterruptedPluginIgnoresContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, cancel := context.WithCancel(t.Context())
		p := &fake{credential: func(context.Context, plugin.Request) (*plugin.Credential, error) {
			cancel()
			time.Sleep(time.Minute)
			return nil, errors.New("late")
		}}
		start := time.Now()
		code, _, stderr := run(ctx, p, nil, info(v1, "{}"))
		g.Expect(code).To(Equal(plugin.ExitInterrupted))
		g.Expect(stderr).To(Equal("fake: interrupted: context canceled\n"))
		g.Expect(time.Since(start)).To(Equal(grace))
		time.Sleep(time.Hour)
	})
}

func TestErrorLine(t *testing.T) {
	g := NewWithT(t)
	p := returning(nil, errors.New("\x1b[31mred\x00 \xff"+strings.Repeat("ä", 5000)))
	code, _, stderr := run(t.Context(), p, nil, info(v1, "{}"))
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stderr).To(HavePrefix("fake: [31mred ?ää"))
	g.Expect(stderr).To(HaveSuffix("ä …\n"))
	g.Expect(len(stderr)).To(BeNumerically("<", 2100))
}

// clashing is a plugin with a flag whose name is reserved.
type clashing struct{ *fake }

func (clashing) AddFlags(flags *flag.FlagSet) { flags.Bool("timeout", false, "") }

func TestPanicInAddFlags(t *testing.T) {
	g := NewWithT(t)
	code, stdout, stderr := run(t.Context(), clashing{never(t)}, nil, info(v1, "{}"))
	g.Expect(code).To(Equal(plugin.ExitFailed))
	g.Expect(stdout).To(BeEmpty())
	g.Expect(stderr).To(Equal("fake: internal error: panic of type string\n"))
}
