// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// server is an API server that only authenticates. "/watch" never ends, "/hang"
// never responds, "/slow" responds when finish is closed.
type server struct {
	*httptest.Server

	mu       sync.Mutex
	accepted map[string]bool
	seen     []string

	hanging    chan struct{} // one for each request without a response
	finish     chan struct{}
	watchEnded chan struct{} // one for each watch that has ended

	connections atomic.Int64 // that are open
}

func newServer(t testing.TB, tokens ...string) *server {
	t.Helper()
	s := &server{accepted: map[string]bool{}, hanging: make(chan struct{}, 100), finish: make(chan struct{}), watchEnded: make(chan struct{}, 100)}
	s.accept(tokens...)
	s.Server = httptest.NewUnstartedServer(s)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that tests close
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.connections.Add(1)
		case http.StateClosed, http.StateHijacked:
			s.connections.Add(-1)
		}
	}
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// accept makes these the tokens, and names of client certificates, that the
// server accepts.
func (s *server) accept(tokens ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.accepted)
	for _, token := range tokens {
		s.accepted[token] = true
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	identity := request.Header.Get("Authorization")
	if identity == "" && len(request.TLS.PeerCertificates) > 0 {
		identity = request.TLS.PeerCertificates[0].Subject.CommonName
	}
	body, _ := io.ReadAll(request.Body)

	s.mu.Lock()
	s.seen = append(s.seen, identity)
	ok := s.accepted[identity]
	s.mu.Unlock()
	if !ok {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if request.URL.Path == "/watch" {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-request.Context().Done()
		s.watchEnded <- struct{}{}
		return
	}
	if request.URL.Path == "/hang" || request.URL.Path == "/slow" {
		s.hanging <- struct{}{}
		select {
		case <-request.Context().Done():
			return
		case <-s.finish: // no test closes it during /hang
		}
	}
	_, _ = w.Write(append([]byte("hello "), body...))
}

// identities returns who the requests so far claimed to be.
func (s *server) identities() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func (s *server) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// profile returns one that leads to the server by the provider "fake".
func (s *server) profile(name string, extensions ...clientcmdv1.NamedExtension) *inventory.Profile {
	return profileOf(name, clientcmdv1.Cluster{
		Server:                   s.URL,
		CertificateAuthorityData: s.ca(),
		Extensions:               extensions,
	})
}

func profileOf(name string, cluster clientcmdv1.Cluster) *inventory.Profile {
	profile := &inventory.Profile{}
	profile.Namespace, profile.Name = "fleet", name
	profile.Status.AccessProviders = []inventory.AccessProvider{{Name: "fake", Cluster: cluster}}
	return profile
}

func extension(name, content string) clientcmdv1.NamedExtension {
	return clientcmdv1.NamedExtension{Name: name, Extension: runtime.RawExtension{Raw: []byte(content)}}
}

// provider returns the provider "fake", which runs the plugin.
func (p *fakePlugin) provider() providerfile.Provider {
	return providerfile.Provider{
		Name: "fake",
		ExecConfig: &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1",
			Command:    executable(p.t),
			Args:       []string{"-test.run=none"},
			Env: []clientcmdapi.ExecEnvVar{
				{Name: fakePluginVariable, Value: p.dir},
				// A program with the race detector sleeps before it ends.
				{Name: "GORACE", Value: "atexit_sleep_ms=0"},
			},
		},
	}
}

func executable(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func newResolver(t testing.TB, options credentials.Options) *credentials.Resolver {
	t.Helper()
	if options.Logger.IsZero() {
		options.Logger = testr.NewWithInterface(t, testr.Options{})
	}
	resolver, err := credentials.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(resolver.Close)
	return resolver
}

func resolve(t testing.TB, method credentials.Method, profile *inventory.Profile) *credentials.Access {
	t.Helper()
	access, err := method.Resolve(t.Context(), profile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(access.Release)
	return access
}

func httpClient(t testing.TB, config *rest.Config) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// get returns the status and the body of a response.
func get(client *http.Client, url string) (int, string, error) {
	response, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// future is an expiry that no test reaches.
func future() time.Time { return time.Now().Add(time.Hour) }
