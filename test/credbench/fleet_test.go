// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credbench

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// script is a plugin that costs next to nothing: what is measured is how it is
// run. The first token of an identity expires at $SOON, others at $LATER.
const script = `#!/bin/sh
n=$((0$(cat "$DIR/$1" 2>/dev/null) + 1))
echo $n > "$DIR/$1"
e=$LATER
[ $n -eq 1 ] && e=$SOON
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'$1-$n'","expirationTimestamp":"'$e'"}}'
`

// fleet is one of profiles, and a resolver for them.
type fleet struct {
	t        testing.TB
	dir      string // has a file for each identity, with the number of runs
	resolver *credentials.Resolver
}

// newFleet has tokens that first expire after the given time.
func newFleet(t testing.TB, soon time.Duration) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir()}
	plugin := filepath.Join(t.TempDir(), "plugin")
	check(t, os.WriteFile(plugin, []byte(script), 0o700))
	resolver, err := credentials.New(credentials.Options{Providers: []providerfile.Provider{{
		Name:                        "bench",
		ProfileSourcedCLIArgsPolicy: providerfile.ProfileSourcedCLIArgsAppend,
		ExecConfig: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1",
			Command:    plugin,
			Env: []clientcmdapi.ExecEnvVar{
				{Name: "DIR", Value: f.dir},
				{Name: "SOON", Value: time.Now().Add(soon).UTC().Format(time.RFC3339)},
				{Name: "LATER", Value: time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)},
			},
		},
	}}})
	check(t, err)
	f.resolver = resolver
	return f
}

func (f *fleet) access(n int, identity string) *credentials.Access {
	f.t.Helper()
	profile := &inventory.Profile{}
	profile.Namespace, profile.Name = "fleet", fmt.Sprintf("c%d", n)
	profile.Status.AccessProviders = []inventory.AccessProvider{{Name: "bench", Cluster: clientcmdv1.Cluster{
		Server: fmt.Sprintf("https://c%d.example.com", n),
		Extensions: []clientcmdv1.NamedExtension{{
			Name:      "clusterprofiles.multicluster.x-k8s.io/exec/additional-args",
			Extension: runtime.RawExtension{Raw: fmt.Appendf(nil, `[%q]`, identity)},
		}},
	}}}
	access, err := f.resolver.Resolve(f.t.Context(), profile)
	check(f.t, err)
	return access
}

// runs returns how often the plugin was run.
func (f *fleet) runs() (n int) {
	f.t.Helper()
	files, err := os.ReadDir(f.dir)
	check(f.t, err)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(f.dir, file.Name()))
		check(f.t, err)
		var runs int
		_, err = fmt.Sscan(string(content), &runs)
		check(f.t, err)
		n += runs
	}
	return n
}

// client sends requests that are answered as soon as they are authorized.
type client struct {
	transport http.RoundTripper
	request   *http.Request
}

func newClient(t testing.TB, config *rest.Config) *client {
	t.Helper()
	transport, err := rest.HTTPWrappersForConfig(config, answering{})
	check(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host, nil)
	check(t, err)
	return &client{transport: transport, request: request}
}

func (c *client) send() error {
	delete(c.request.Header, "Authorization") // client-go adds it in place
	response, err := c.transport.RoundTrip(c.request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// answering takes every request that has a credential.
type answering struct{}

var accepted = &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}

func (answering) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Authorization") == "" {
		return nil, errors.New("no credential")
	}
	return accepted, nil
}

// sendAll sends a request by each client, all at once.
func sendAll(t testing.TB, clients []*client) {
	t.Helper()
	var group sync.WaitGroup
	for _, c := range clients {
		group.Go(func() {
			if err := c.send(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
