// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// granting is a plugin whose token is made of its flag and its config.
type granting struct {
	prefix string
	act    func(ctx context.Context) error // what it does before, if anything
}

func newGranting() plugin.Plugin { return &granting{} }

func grantingThat(act func(ctx context.Context) error) func() plugin.Plugin {
	return func() plugin.Plugin { return &granting{act: act} }
}

func (p *granting) Name() string    { return "granting" }
func (p *granting) Version() string { return "v1" }
func (p *granting) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&p.prefix, "prefix", "t-", "`text` before")
}

func (p *granting) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	type config struct {
		Name string `json:"name"`
	}
	c, err := plugin.DecodeConfig[config](request)
	if err == nil && p.act != nil {
		err = p.act(ctx)
	}
	return &plugin.Credential{Token: p.prefix + c.Name + "\n", Expiry: future()}, err
}

func named(name string) string { return fmt.Sprintf(`{"name":%q}`, name) }

func inProcess(newPlugin func() plugin.Plugin, change ...func(*providerfile.Provider)) credentials.Options {
	provider := providerfile.Provider{Name: "fake", Rollcall: providerfile.Extensions{InProcess: "granting"}}
	for _, f := range change {
		f(&provider)
	}
	return credentials.Options{Plugins: []func() plugin.Plugin{newPlugin}, Providers: []providerfile.Provider{provider}}
}

func TestInProcess(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t, "Bearer t-c1", "Bearer x-c2")
	resolver := newResolver(t, inProcess(newGranting))
	access := resolve(t, resolver, server.profile("c1", extension(configExtension, named("c1"))))
	getAll(t, httpClient(t, access.RESTConfig()), server.URL, 10, 200)

	_, _, err := get(httpClient(t, access.PortableRESTConfig()), server.URL)
	g.Expect(err).To(MatchError(credentials.ErrNotPortable))

	// Arguments are the binary's, and each profile has its own.
	resolver = newResolver(t, inProcess(newGranting, func(p *providerfile.Provider) {
		p.ProfileSourcedCLIArgsPolicy = providerfile.ProfileSourcedCLIArgsAppend
		p.ExecConfig = &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1beta1", Command: "/plugins/granting", ProvideClusterInfo: true,
		}
	}))
	c2 := resolve(t, resolver, server.profile("c2", extension(configExtension, named("c2")), extension(argsExtension, `["-prefix=x-"]`)))
	c1 := resolve(t, resolver, server.profile("c1", extension(configExtension, named("c1"))))
	getAll(t, httpClient(t, c2.RESTConfig()), server.URL, 1, 200)
	getAll(t, httpClient(t, c1.RESTConfig()), server.URL, 1, 200)
	g.Expect(c1.PortableRESTConfig().ExecProvider.Command).To(Equal("/plugins/granting"), "with a command, the binary does it elsewhere")
}

func TestInProcessOneRunForManyRequests(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	runs := 0
	server := newServer(t, "Bearer t-c1")
	resolver := newResolver(t, inProcess(grantingThat(func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		runs++
		return nil
	})))
	access := resolve(t, resolver, server.profile("c1", extension(configExtension, named("c1"))))
	getAll(t, httpClient(t, access.RESTConfig()), server.URL, 100, 200)
	mu.Lock()
	defer mu.Unlock()
	g.Expect(runs).To(Equal(1))
}

func TestInProcessFailures(t *testing.T) {
	for _, test := range []struct {
		name, config string
		act          func(context.Context) error
		args         []string
		kind         error
		text         string
	}{
		{"an error", named("c1"), func(context.Context) error { return errors.New("token=s3cret is sealed") }, nil,
			credentials.ErrPluginFailed, `plugin failed: granting: exit code 1: granting: token=[redacted] is sealed`},
		{"a config that it does not understand", `{"nam":"c1"}`, nil, nil, credentials.ErrPluginFailed, `exit code 3: granting: bad request`},
		{"a flag that it does not have", named("c1"), nil, []string{"-x"}, credentials.ErrPluginFailed, `exit code 2: granting: flag provided but not defined: -x`},
		{"a panic", named("c1"), func(context.Context) error { panic("s3cret") }, nil, credentials.ErrPluginFailed, `panic of type string`},
		{"no end before the time limit", named("c1"), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil, credentials.ErrTimeout, `plugin timed out after 100ms: granting`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			server := newServer(t)
			options := inProcess(grantingThat(test.act), func(p *providerfile.Provider) {
				p.ExecConfig = &clientcmdapi.ExecConfig{
					APIVersion: "client.authentication.k8s.io/v1", Args: test.args, ProvideClusterInfo: true,
				}
			})
			if errors.Is(test.kind, credentials.ErrTimeout) {
				options.Timeout = 100 * time.Millisecond
			}
			access := resolve(t, newResolver(t, options), server.profile("c1", extension(configExtension, test.config)))
			client := httpClient(t, access.RESTConfig())
			for range 3 { // the backoff is the same, too
				_, _, err := get(client, server.URL)
				g.Expect(err).To(MatchError(test.kind))
				g.Expect(err).To(MatchError(ContainSubstring(test.text)))
				g.Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
			}
		})
	}
}

func TestInProcessPanicBeforeRun(t *testing.T) {
	g := NewWithT(t)
	first := true
	options := inProcess(func() plugin.Plugin {
		if !first {
			panic("s3cret")
		}
		first = false
		return newGranting()
	})
	server := newServer(t)
	access := resolve(t, newResolver(t, options), server.profile("c1"))
	_, _, err := get(httpClient(t, access.RESTConfig()), server.URL)
	g.Expect(err).To(MatchError(credentials.ErrPluginFailed))
	g.Expect(err).To(MatchError(ContainSubstring("panic of type string")))
	g.Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
}

func TestInProcessPluginThatHangs(t *testing.T) {
	g := NewWithT(t)
	gate := make(chan struct{})
	entered := make(chan struct{}, 10)
	server := newServer(t, "Bearer t-c1", "Bearer t-c2")
	options := inProcess(grantingThat(func(context.Context) error {
		entered <- struct{}{}
		<-gate
		return nil
	}))
	options.Timeout, options.MaxConcurrentRuns = 50*time.Millisecond, 1
	resolver := newResolver(t, options)
	profile := server.profile("c1", extension(configExtension, named("c1")))
	first := resolve(t, resolver, profile)
	_, _, err := get(httpClient(t, first.RESTConfig()), server.URL)
	g.Expect(err).To(MatchError(credentials.ErrTimeout))
	g.Expect(entered).To(HaveLen(1))

	// Nor for an Access that is made after the release.
	first.Release()
	client := httpClient(t, resolve(t, resolver, profile).RESTConfig())
	_, _, err = get(client, server.URL)
	g.Expect(err).To(MatchError(ContainSubstring("it has not returned from an earlier run")))
	g.Expect(entered).To(HaveLen(1))

	g.Eventually(func() error {
		_, _, err := get(client, server.URL)
		return err
	}, "10s").Should(MatchError(ContainSubstring("it has not returned from an earlier run")))
	g.Expect(entered).To(HaveLen(1), "it is not run again for the same purpose")

	close(gate)
	other := httpClient(t, resolve(t, resolver, server.profile("c2", extension(configExtension, named("c2")))).RESTConfig())
	getAll(t, other, server.URL, 1, 200)
	g.Eventually(func() error {
		_, _, err := get(client, server.URL)
		return err
	}, "20s").Should(Succeed(), "and is, once it has returned")
}

func TestInProcessReleaseAndClose(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(*credentials.Resolver, *credentials.Access)
		kind error
	}{
		{"release", func(_ *credentials.Resolver, a *credentials.Access) { a.Release() }, credentials.ErrReleased},
		{"close", func(r *credentials.Resolver, _ *credentials.Access) { r.Close() }, credentials.ErrClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			server := newServer(t)
			entered, left := make(chan struct{}), make(chan struct{})
			resolver := newResolver(t, inProcess(grantingThat(func(ctx context.Context) error {
				close(entered)
				<-ctx.Done()
				close(left)
				return ctx.Err()
			})))
			access := resolve(t, resolver, server.profile("c1", extension(configExtension, named("c1"))))
			client := httpClient(t, access.RESTConfig())
			failed := make(chan error)
			go func() {
				_, _, err := get(client, server.URL)
				failed <- err
			}()
			<-entered
			test.end(resolver, access)
			<-left
			g.Expect(<-failed).To(MatchError(test.kind))
		})
	}
}

func TestInProcessOutputTooLong(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t)
	resolver := newResolver(t, credentials.Options{
		Plugins:   []func() plugin.Plugin{func() plugin.Plugin { return &verbose{} }},
		Providers: []providerfile.Provider{{Name: "fake", Rollcall: providerfile.Extensions{InProcess: "verbose"}}},
	})
	_, _, err := get(httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig()), server.URL)
	g.Expect(err).To(MatchError(credentials.ErrPluginFailed))
	g.Expect(err).To(MatchError(ContainSubstring("the credential takes more than 1048576 bytes")))
}

type verbose struct{}

func (*verbose) Name() string    { return "verbose" }
func (*verbose) Version() string { return "v1" }
func (*verbose) Credential(context.Context, plugin.Request) (*plugin.Credential, error) {
	return &plugin.Credential{Token: strings.Repeat("x", 2<<20)}, nil
}
