// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

func TestCredentialIsThatOfRequests(t *testing.T) {
	g := NewWithT(t)
	expiry := future().Truncate(time.Second)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", expiry)
	access := resolve(t, onePlugin(t, plugin), server.profile("c1"))
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			credential, err := access.Credential(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credential.Token).To(Equal("t1"))
			g.Expect(credential.Expiry).To(BeTemporally("==", expiry))
		})
	}
	group.Wait()
	getAll(t, httpClient(t, access.RESTConfig()), server.URL, 3, 200)
	g.Expect(plugin.runs()).To(HaveLen(1))

	access.Release()
	_, err := access.Credential(t.Context())
	g.Expect(err).To(MatchError(credentials.ErrReleased))
}

func TestCredentialWithCertificate(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t)
	end := future().Truncate(time.Second)
	plugin.outputCertificate("one", end)
	credential, err := resolve(t, onePlugin(t, plugin), server.profile("c1")).Credential(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(credential.Expiry).To(BeTemporally("==", end))
	pair, err := tls.X509KeyPair(credential.ClientCertificate, credential.ClientKey)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pair.Leaf.Subject.CommonName).To(Equal("one"))
}

func TestCredentialOfFailingPlugin(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t)
	plugin.set("stderr", "no such account")
	plugin.set("code", "1")
	_, err := resolve(t, onePlugin(t, plugin), server.profile("c1")).Credential(t.Context())
	g.Expect(err).To(MatchError(credentials.ErrPluginFailed))
	g.Expect(err).To(MatchError(ContainSubstring("no such account")))
	g.Expect(err).To(BeAssignableToTypeOf(&credentials.Error{}))
}

func TestCredentialOfConfiguration(t *testing.T) {
	end := future().Truncate(time.Second)
	certificate, key := newCertificate(t, "one", end)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		config rest.Config
		token  string
		end    time.Time
		err    string
	}{
		{name: "a token", config: rest.Config{BearerToken: "t1"}, token: "t1"},
		{name: "a token in a file, which has precedence", config: rest.Config{BearerToken: "t1", BearerTokenFile: file}, token: "from-file"},
		{
			name:   "a client certificate, with its end",
			config: rest.Config{TLSClientConfig: rest.TLSClientConfig{CertData: []byte(certificate), KeyData: []byte(key)}},
			end:    end,
		},
		{name: "a password", config: rest.Config{Username: "me", Password: "s3cret"}, err: "a user name and a password cannot be passed on"},
		{
			name:   "a command that only a Resolver runs",
			config: rest.Config{ExecProvider: &clientcmdapi.ExecConfig{Command: "/bin/true", APIVersion: "client.authentication.k8s.io/v1"}},
			err:    "cannot be passed on",
		},
		{name: "nothing", err: "neither a token nor a client certificate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			tc.config.Host = "https://c1.example.com"
			access := credentials.FromRESTConfig(&tc.config)
			defer access.Release()
			credential, err := access.Credential(t.Context())
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				g.Expect(err).NotTo(MatchError(ContainSubstring("s3cret")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(credential.Token).To(Equal(tc.token))
			g.Expect(credential.Expiry).To(BeTemporally("==", tc.end))
			g.Expect(string(credential.ClientCertificate)).To(Equal(string(tc.config.CertData)))
			g.Expect(fmt.Sprintf("%+v", credential)).NotTo(ContainSubstring("PRIVATE KEY"))
		})
	}
}
