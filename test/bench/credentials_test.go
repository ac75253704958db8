// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

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

// script is a plugin that costs next to nothing, so that running it is measured.
// The first token of an identity expires at $SOON, others at $LATER.
const script = `#!/bin/sh
n=$((0$(cat "$DIR/$1" 2>/dev/null) + 1))
echo $n > "$DIR/$1"
e=$LATER
[ $n -eq 1 ] && e=$SOON
echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'$1-$n'","expirationTimestamp":"'$e'"}}'
`

// resolving is a resolver with a plugin whose runs are counted.
type resolving struct {
	tb       testing.TB
	dir      string // has a file for each identity with the number of runs
	resolver *credentials.Resolver
}

// newResolving returns a resolver. The first tokens expire soon.
func newResolving(tb testing.TB, soon time.Duration) *resolving {
	tb.Helper()
	r := &resolving{tb: tb, dir: tb.TempDir()}
	plugin := filepath.Join(tb.TempDir(), "plugin")
	check(tb, os.WriteFile(plugin, []byte(script), 0o700))
	resolver, err := credentials.New(credentials.Options{Providers: []providerfile.Provider{{
		Name:                        "bench",
		ProfileSourcedCLIArgsPolicy: providerfile.ProfileSourcedCLIArgsAppend,
		ExecConfig: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1",
			Command:    plugin,
			Env: []clientcmdapi.ExecEnvVar{
				{Name: "DIR", Value: r.dir},
				{Name: "SOON", Value: time.Now().Add(soon).UTC().Format(time.RFC3339)},
				{Name: "LATER", Value: time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)},
			},
		},
	}}})
	check(tb, err)
	r.resolver = resolver
	return r
}

func (r *resolving) access(n int, identity string) *credentials.Access {
	r.tb.Helper()
	profile := &inventory.Profile{}
	profile.Namespace, profile.Name = "fleet", fmt.Sprintf("c%d", n)
	profile.Status.AccessProviders = []inventory.AccessProvider{{Name: "bench", Cluster: clientcmdv1.Cluster{
		Server: fmt.Sprintf("https://c%d.example.com", n),
		Extensions: []clientcmdv1.NamedExtension{{
			Name:      "clusterprofiles.multicluster.x-k8s.io/exec/additional-args",
			Extension: runtime.RawExtension{Raw: fmt.Appendf(nil, `[%q]`, identity)},
		}},
	}}}
	access, err := r.resolver.Resolve(r.tb.Context(), profile)
	check(r.tb, err)
	return access
}

// runs returns how often the plugin was run.
func (r *resolving) runs() (n int) {
	r.tb.Helper()
	files, err := os.ReadDir(r.dir)
	check(r.tb, err)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(r.dir, file.Name()))
		check(r.tb, err)
		var runs int
		_, err = fmt.Sscan(string(content), &runs)
		check(r.tb, err)
		n += runs
	}
	return n
}

// sender sends requests that are answered without a network.
type sender struct {
	transport http.RoundTripper
	request   *http.Request
}

func newSender(tb testing.TB, config *rest.Config) *sender {
	tb.Helper()
	transport, err := rest.HTTPWrappersForConfig(config, answering{})
	check(tb, err)
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, config.Host, nil)
	check(tb, err)
	return &sender{transport: transport, request: request}
}

func (s *sender) send() error {
	delete(s.request.Header, "Authorization") // client-go adds it in place
	response, err := s.transport.RoundTrip(s.request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// answering accepts every request with a credential.
type answering struct{}

var accepted = &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}

func (answering) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Authorization") == "" {
		return nil, errors.New("no credential")
	}
	return accepted, nil
}

// sendAll sends one request with each sender, all at once.
func sendAll(tb testing.TB, senders []*sender) {
	tb.Helper()
	var group sync.WaitGroup
	for _, c := range senders {
		group.Go(func() {
			if err := c.send(); err != nil {
				tb.Error(err)
			}
		})
	}
	group.Wait()
}
