// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// A profile lists the access provider "vault". The provider file assigns a plugin
// to it that is part of this program.
func ExampleResolver() {
	server := newExampleServer()
	defer server.Close()
	profile := &inventory.Profile{}
	profile.Namespace, profile.Name = "fleet", "c1"
	profile.Status.AccessProviders = []inventory.AccessProvider{{
		Name:    "vault",
		Cluster: clientcmdv1.Cluster{Server: server.URL, CertificateAuthorityData: caOf(server)},
	}}
	file := filepath.Join(os.TempDir(), fmt.Sprintf("providers-%d.yaml", os.Getpid()))
	defer os.Remove(file)
	if err := os.WriteFile(file, []byte(`
providers:
- name: vault
  rollcall:
    inProcess: vault
    allowedServers: ["127.0.0.1"]
`), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	resolver, err := credentials.New(credentials.Options{
		ProviderFile: file,
		Plugins:      []func() plugin.Plugin{func() plugin.Plugin { return vault{} }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resolver.Close()

	access, err := resolver.Resolve(context.Background(), profile)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer access.Release()
	fmt.Println("provider:", access.Provider())
	fmt.Println(whoAmI(access.RESTConfig()))
	// Output:
	// provider: vault
	// Bearer token-of-the-vault
}

// vault is a credential plugin.
type vault struct{}

func (vault) Name() string    { return "vault" }
func (vault) Version() string { return "v1.0.0" }
func (vault) Credential(context.Context, plugin.Request) (*plugin.Credential, error) {
	return &plugin.Credential{Token: "token-of-the-vault"}, nil
}

func ExampleFromRESTConfig() {
	server := newExampleServer()
	defer server.Close()
	access := credentials.FromRESTConfig(&rest.Config{
		Host:            server.URL,
		BearerToken:     "token-1",
		TLSClientConfig: rest.TLSClientConfig{CAData: caOf(server)},
	})
	defer access.Release()
	fmt.Println(whoAmI(access.RESTConfig()))
	// Output: Bearer token-1
}

// The token in a kubeconfig has been rotated. Clients go on with the new one.
func ExampleAccess_Switch() {
	server := newExampleServer()
	defer server.Close()
	config := &rest.Config{
		Host:            server.URL,
		BearerToken:     "token-1",
		TLSClientConfig: rest.TLSClientConfig{CAData: caOf(server)},
	}
	access := credentials.FromRESTConfig(config)
	defer access.Release()
	client := access.RESTConfig()
	fmt.Println(whoAmI(client))

	config.BearerToken = "token-2"
	next := credentials.FromRESTConfig(config)
	if next.Fingerprint() == access.Fingerprint() {
		next.Release()
		return
	}
	if err := access.Switch(next); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(whoAmI(client))
	// Output:
	// Bearer token-1
	// Bearer token-2
}

// newExampleServer returns a server that responds with the credential it gets.
func newExampleServer() *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		_, _ = io.WriteString(w, request.Header.Get("Authorization"))
	}))
}

func caOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func whoAmI(config *rest.Config) string {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err.Error()
	}
	response, err := client.Get(config.Host)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}
