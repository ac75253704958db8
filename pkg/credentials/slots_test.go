// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// hangingFleet is a provider whose plugin hangs for some clusters.
type hangingFleet struct {
	provider providerfile.Provider
	plugins  []func() plugin.Plugin
	profile  func(provider, name string, hangs bool) *inventory.Profile
	hung     func() int // runs that hang
	healthy  func() int // runs that do not
}

// hangingProcesses are plugins that are processes.
func hangingProcesses(t *testing.T, s *server) *hangingFleet {
	hung, healthy := newFakePlugin(t), newFakePlugin(t)
	hung.shut()
	healthy.output("t1", time.Time{})
	f := &hangingFleet{provider: healthy.provider()}
	f.provider.ExecConfig.ProvideClusterInfo = true
	f.provider.ProfileSourcedEnvVarsPolicy = providerfile.ProfileSourcedEnvVarsReplace
	f.profile = func(provider, name string, hangs bool) *inventory.Profile {
		extensions := []clientcmdv1.NamedExtension{extension(configExtension, named(name))}
		if hangs {
			extensions = append(extensions, extension(envsExtension, fmt.Sprintf(`{%q:%q}`, fakePluginVariable, hung.dir)))
		}
		profile := s.profile(name, extensions...)
		profile.Status.AccessProviders[0].Name = provider
		return profile
	}
	f.hung = func() int { return len(hung.runs()) }
	f.healthy = func() int { return len(healthy.runs()) }
	return f
}

// hangingInProcess are plugins in this process.
func hangingInProcess(_ *testing.T, s *server) *hangingFleet {
	f := &hangingFleet{}
	var mu sync.Mutex
	var hung, healthy int
	f.plugins = []func() plugin.Plugin{func() plugin.Plugin {
		return requestPlugin(func(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
			hangs := strings.Contains(string(request.Cluster.Config), "hung")
			mu.Lock()
			if hangs {
				hung++
			} else {
				healthy++
			}
			mu.Unlock()
			if hangs {
				<-ctx.Done()
			}
			return &plugin.Credential{Token: "t1"}, ctx.Err()
		})
	}}
	f.provider = providerfile.Provider{Name: "fake", Rollcall: providerfile.Extensions{InProcess: "request"}}
	f.provider.ExecConfig = &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Args: []string{"--timeout=0"}, ProvideClusterInfo: true,
	}
	f.profile = func(provider, name string, hangs bool) *inventory.Profile {
		if hangs {
			name = "hung-" + name
		}
		profile := s.profile(name, extension(configExtension, named(name)))
		profile.Status.AccessProviders[0].Name = provider
		return profile
	}
	count := func(n *int) func() int {
		return func() int {
			mu.Lock()
			defer mu.Unlock()
			return *n
		}
	}
	f.hung, f.healthy = count(&hung), count(&healthy)
	return f
}

// requestPlugin is a plugin that is its function.
type requestPlugin func(context.Context, plugin.Request) (*plugin.Credential, error)

func (requestPlugin) Name() string    { return "request" }
func (requestPlugin) Version() string { return "v1" }
func (p requestPlugin) Credential(ctx context.Context, r plugin.Request) (*plugin.Credential, error) {
	return p(ctx, r)
}

// impatient returns a client that fails if it has to wait for a hanging plugin,
// whose time limit is a minute.
func impatient(t *testing.T, access *credentials.Access) *http.Client {
	client := httpClient(t, access.RESTConfig())
	client.Timeout = 45 * time.Second
	return client
}

// hang makes requests to 40 clusters whose plugin hangs, and returns when the
// plugin runs for as many as may run at once. The channel gets their errors.
func (f *hangingFleet) hang(t *testing.T, resolver *credentials.Resolver, url string) <-chan error {
	failed := make(chan error, 40)
	for i := range cap(failed) {
		client := httpClient(t, resolve(t, resolver, f.profile("fake", fmt.Sprint(i), true)).RESTConfig())
		go func() {
			_, _, err := get(client, url)
			failed <- err
		}()
	}
	NewWithT(t).Eventually(f.hung, "60s").Should(BeNumerically(">=", 6))
	return failed
}

func TestHangingPluginsHoldUpNoOther(t *testing.T) {
	for name, newFleet := range map[string]func(*testing.T, *server) *hangingFleet{
		"as processes": hangingProcesses, "in this process": hangingInProcess,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := newServer(t, "Bearer t1")
			fleet := newFleet(t, server)
			other := fleet.provider
			other.Name = "other"
			resolver := newResolver(t, credentials.Options{
				Plugins: fleet.plugins, Providers: []providerfile.Provider{fleet.provider, other},
				Timeout: time.Minute, RefreshInterval: time.Nanosecond,
			})
			renewing := impatient(t, resolve(t, resolver, fleet.profile("fake", "renewing", false)))
			getAll(t, renewing, server.URL, 1, 200)
			failed := fleet.hang(t, resolver, server.URL)

			before := fleet.healthy()
			getAll(t, renewing, server.URL, 1, 200)
			g.Eventually(fleet.healthy, "45s").Should(BeNumerically(">", before), "a renewal does not wait")
			before = fleet.healthy()
			getAll(t, impatient(t, resolve(t, resolver, fleet.profile("other", "new", false))), server.URL, 1, 200)
			g.Expect(fleet.healthy()).To(BeNumerically(">", before), "nor does another provider")
			g.Expect(fleet.hung()).To(Equal(6), "those that hang do not get all slots")

			// With most of them waiting for a slot.
			resolver.Close()
			for range cap(failed) {
				g.Expect(<-failed).To(MatchError(credentials.ErrClosed))
			}
		})
	}
}

func TestProviderFileChangesWhileRunsWait(t *testing.T) {
	g := NewWithT(t)
	server := newServer(t, "Bearer t1")
	fleet := hangingInProcess(t, server)
	path := filepath.Join(t.TempDir(), "providers.yaml")
	entry := "- name: %s\n  rollcall: {inProcess: request}\n" +
		"  execConfig: {apiVersion: client.authentication.k8s.io/v1, args: [--timeout=0], provideClusterInfo: true}\n"
	replaced(t, path, "providers:\n"+fmt.Sprintf(entry, "fake"))
	resolver := newResolver(t, credentials.Options{Plugins: fleet.plugins, ProviderFile: path, Timeout: time.Minute})
	failed := fleet.hang(t, resolver, server.URL)

	replaced(t, path, "providers:\n"+fmt.Sprintf(entry, "fresh"))
	settle(t, resolver)
	getAll(t, impatient(t, resolve(t, resolver, fleet.profile("fresh", "new", false))), server.URL, 1, 200)
	g.Expect(failed).To(BeEmpty(), "those of the former entry go on")
	resolver.Close()
	for range cap(failed) {
		g.Expect(<-failed).To(MatchError(credentials.ErrClosed))
	}
}
