// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// outputCertificate makes a client certificate of that name the output.
func (p *fakePlugin) outputCertificate(name string, notAfter time.Time) {
	p.t.Helper()
	certificate, key := newCertificate(p.t, name, notAfter)
	p.set("output", execCredential("client.authentication.k8s.io/v1", map[string]string{
		"clientCertificateData": certificate,
		"clientKeyData":         key,
	}))
}

func newCertificate(t testing.TB, name string, notAfter time.Time) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     notAfter,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

func TestClientCertificates(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "one")
	plugin.outputCertificate("one", future())
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())
	getAll(t, client, server.URL, 3, 200)
	g.Expect(server.identities()).To(Equal([]string{"one", "one", "one"}))
	watch, err := client.Get(server.URL + "/watch")
	g.Expect(err).NotTo(HaveOccurred())

	// The server trusts another name: the request is repeated on a new
	// connection, and the old one is closed, with its watch.
	plugin.outputCertificate("two", future())
	server.accept("two")
	getAll(t, client, server.URL, 1, 200)
	_, err = watch.Body.Read(make([]byte, 1))
	g.Expect(err).To(HaveOccurred())
	g.Expect(watch.Body.Close()).To(Succeed())
	getAll(t, client, server.URL, 20, 200)
	g.Expect(plugin.runs()).To(HaveLen(2))
}

func TestNewCertificateKeepsRequests(t *testing.T) {
	g := NewWithT(t)
	plugin, server, other := newFakePlugin(t), newServer(t, "one", "two"), newServer(t, "two")
	plugin.outputCertificate("one", future())
	resolver := onePlugin(t, plugin)
	client := httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig())
	watch, err := client.Get(server.URL + "/watch")
	g.Expect(err).NotTo(HaveOccurred())
	responses := make(chan error)
	const each = 8
	for range each {
		go func() {
			status, _, err := get(client, server.URL+"/slow")
			responses <- expectOK(status, err)
		}()
		go func() {
			response, err := client.Post(server.URL+"/slow", "text/plain", strings.NewReader("create"))
			if err != nil {
				responses <- err
				return
			}
			responses <- expectOK(response.StatusCode, response.Body.Close())
		}()
	}
	for range 2 * each {
		<-server.hanging
	}

	// Another cluster with the same credential accepts only a later one.
	plugin.outputCertificate("two", future())
	getAll(t, httpClient(t, resolve(t, resolver, other.profile("c2")).RESTConfig()), other.URL, 1, 200)
	g.Expect(plugin.runs()).To(HaveLen(2))
	getAll(t, client, server.URL, 1, 200)
	seen := server.identities()
	g.Expect(seen[len(seen)-1]).To(Equal("two"), "new requests have the new certificate")
	close(server.finish)
	for range 2 * each {
		g.Expect(<-responses).To(Succeed())
	}
	g.Expect(server.watchEnded).NotTo(Receive())
	g.Expect(server.connections.Load()).To(BeEquivalentTo(2))
	g.Expect(watch.Body.Close()).To(Succeed())
	g.Eventually(server.connections.Load).Should(BeEquivalentTo(1), "what had the old certificate is closed")
}

func TestOldCertificateEnds(t *testing.T) {
	g := NewWithT(t)
	plugin, server, other := newFakePlugin(t), newServer(t, "one", "two"), newServer(t, "two")
	plugin.outputCertificate("one", time.Now().Add(8*time.Second))
	resolver := onePlugin(t, plugin)
	client := httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig())
	watch, err := client.Get(server.URL + "/watch")
	g.Expect(err).NotTo(HaveOccurred())
	plugin.outputCertificate("two", future())
	getAll(t, httpClient(t, resolve(t, resolver, other.profile("c2")).RESTConfig()), other.URL, 1, 200)
	g.Eventually(server.watchEnded, "30s").Should(Receive())
	g.Expect(watch.Body.Close()).To(Succeed())
}

func expectOK(status int, err error) error {
	if err == nil && status != http.StatusOK {
		return fmt.Errorf("status %d", status)
	}
	return err
}

func TestNewTokenKeepsConnections(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())
	watch, err := client.Get(server.URL + "/watch")
	g.Expect(err).NotTo(HaveOccurred())

	plugin.output("t2", future())
	server.accept("Bearer t2")
	getAll(t, client, server.URL, 1, 200)
	g.Consistently(server.watchEnded, "100ms").ShouldNot(Receive())
	g.Expect(watch.Body.Close()).To(Succeed())
	g.Eventually(server.watchEnded).Should(Receive())
}

func TestExpiredCertificate(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "one")
	plugin.outputCertificate("one", time.Now().Add(-time.Minute))
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())
	_, _, err := get(client, server.URL)
	g.Expect(err).To(MatchError(credentials.ErrExpired))
}

func TestCertificateAfterFirstConnection(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer mine", "one")
	plugin.outputCertificate("one", future())
	access := resolve(t, onePlugin(t, plugin), server.profile("c1"))

	// This request makes a connection without asking the plugin.
	own := access.RESTConfig()
	own.BearerToken = "mine"
	getAll(t, httpClient(t, own), server.URL, 1, 200)
	g.Expect(plugin.runs()).To(BeEmpty())

	getAll(t, httpClient(t, access.RESTConfig()), server.URL, 1, 200)
	g.Expect(server.identities()).To(Equal([]string{"Bearer mine", "one"}))
}

func TestSameCertificateAfterExpiry(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer mine", "one")
	certificate, key := newCertificate(t, "one", future())
	output := func(expiry time.Time) {
		plugin.set("output", execCredential("client.authentication.k8s.io/v1", map[string]string{
			"clientCertificateData": certificate, "clientKeyData": key,
			"expirationTimestamp": expiry.UTC().Format(time.RFC3339Nano),
		}))
	}
	expiry := time.Now().Add(5 * time.Second)
	output(expiry)
	access := resolve(t, onePlugin(t, plugin), server.profile("c1"))
	client := httpClient(t, access.RESTConfig())
	getAll(t, client, server.URL, 1, 200)
	server.CloseClientConnections()
	output(future())
	g.Eventually(time.Now, "30s").Should(BeTemporally(">", expiry))

	// This request makes a connection while there is no valid certificate.
	own := access.RESTConfig()
	own.BearerToken = "mine"
	getAll(t, httpClient(t, own), server.URL, 1, 200)
	getAll(t, client, server.URL, 1, 200)
	g.Expect(server.identities()).To(Equal([]string{"one", "Bearer mine", "one"}))
}

func TestTokenAndCertificateTogether(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	certificate, key := newCertificate(t, "one", future())
	plugin.set("output", execCredential("client.authentication.k8s.io/v1", map[string]string{
		"token": "t1", "clientCertificateData": certificate, "clientKeyData": key,
	}))
	client := httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig())
	response, err := client.Get(server.URL)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(http.StatusOK))
}
