// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "s3cr3t-T0ken-0f-the-Test"

// apiServer is an API server that reviews its users.
type apiServer struct {
	*httptest.Server

	user     string                                   // the owner of the token
	rules    authorizationv1.SubjectRulesReviewStatus // in each namespace
	noRules  bool                                     // does not serve reviews of rules
	allowed  func(authorizationv1.SelfSubjectAccessReviewSpec) bool
	override http.HandlerFunc // instead of all of the above
}

// certificate changes the server's certificate before it is signed.
type certificate func(*x509.Certificate)

func newAPIServer(t testing.TB, s *apiServer, change certificate) *apiServer {
	t.Helper()
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{newCertificate(t, change)}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func newCertificate(t testing.TB, change certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "api"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if s.override != nil {
		s.override(w, request)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if request.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
		return
	}
	body, _ := io.ReadAll(request.Body)
	var answer any
	switch request.URL.Path {
	case "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		review := authenticationv1.SelfSubjectReview{}
		_ = json.Unmarshal(body, &review)
		review.Status.UserInfo = authenticationv1.UserInfo{Username: s.user, Groups: []string{"viewers", "system:authenticated"}}
		answer = review
	case "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews":
		if s.noRules {
			http.NotFound(w, request)
			return
		}
		review := authorizationv1.SelfSubjectRulesReview{}
		_ = json.Unmarshal(body, &review)
		review.Status = s.rules
		answer = review
	case "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		review := authorizationv1.SelfSubjectAccessReview{}
		_ = json.Unmarshal(body, &review)
		review.Status.Allowed = s.allowed != nil && s.allowed(review.Spec)
		answer = review
	default:
		http.NotFound(w, request)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *apiServer) cluster() clientcmdv1.Cluster {
	return clientcmdv1.Cluster{
		Server:                   s.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.TLS.Certificates[0].Certificate[0]}),
	}
}

func profileOf(name string, cluster clientcmdv1.Cluster) *inventory.Profile {
	profile := &inventory.Profile{}
	profile.Namespace, profile.Name = "fleet", name
	profile.Status.AccessProviders = []inventory.AccessProvider{{Name: "script", Cluster: cluster}}
	return profile
}

func withConfig(cluster clientcmdv1.Cluster, config string) clientcmdv1.Cluster {
	cluster.Extensions = []clientcmdv1.NamedExtension{{Name: "client.authentication.k8s.io/exec", Extension: runtime.RawExtension{Raw: []byte(config)}}}
	return cluster
}

// credentialOf is what a plugin prints.
func credentialOf(token string, expiry time.Time) string {
	return fmt.Sprintf(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":%q,"expirationTimestamp":%q}}`,
		token, expiry.UTC().Format(time.RFC3339))
}

// scriptPlugin returns a provider whose plugin is a shell script.
func scriptPlugin(t testing.TB, lines ...string) providerfile.Provider {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+strings.Join(lines, "\n")+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return providerfile.Provider{Name: "script", ExecConfig: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: path, ProvideClusterInfo: true,
	}}
}

// working is a plugin that prints the token.
func working(t testing.TB) providerfile.Provider {
	return scriptPlugin(t, "echo '"+credentialOf(token, time.Now().Add(time.Hour))+"'")
}

func newResolver(t testing.TB, options credentials.Options, providers ...providerfile.Provider) *credentials.Resolver {
	t.Helper()
	options.Providers = slices.Concat(options.Providers, providers)
	options.Logger = testr.NewWithInterface(t, testr.Options{})
	resolver, err := credentials.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(resolver.Close)
	return resolver
}

func allowAll(authorizationv1.SelfSubjectAccessReviewSpec) bool { return true }

// hang never responds.
func hang(_ http.ResponseWriter, r *http.Request) {
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}
