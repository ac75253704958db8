// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/check"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

func TestWorkingProfile(t *testing.T) {
	g := NewWithT(t)
	server := newAPIServer(t, &apiServer{user: "jane"}, nil)
	provider := working(t)
	report := check.Profile(t.Context(), profileOf("c1", server.cluster()), check.Options{Method: newResolver(t, credentials.Options{}, provider)})
	g.Expect(report.Failure()).To(BeNil())
	g.Expect(report.OK).To(BeTrue())
	g.Expect(report.Profile).To(Equal("fleet/c1"))
	g.Expect(report.Provider).To(Equal("script"))
	g.Expect(report.Plugin.Path).To(Equal(provider.ExecConfig.Command))
	g.Expect(report.Plugin.SHA256).To(HaveLen(64))
	g.Expect(report.Credential.Kind).To(Equal(credentials.KindToken))
	g.Expect(time.Until(report.Credential.Expires.Time)).To(BeNumerically(">", time.Minute))
	g.Expect(report.User.Name).To(Equal("jane"))
	g.Expect(report.Step(check.StepTLS).Message).To(ContainSubstring(`certificate "api", issued by "api", valid until`))
	g.Expect(report.Step(check.StepPermissions).Status).To(Equal(check.Skipped))
	text, err := json.Marshal(report)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).NotTo(ContainSubstring(token))
}

func TestPluginVersion(t *testing.T) {
	g := NewWithT(t)
	server := newAPIServer(t, &apiServer{user: "jane"}, nil)
	provider := working(t)
	var err error
	provider.ExecConfig.Command, err = os.Executable() // a Go program, which is not run for this
	g.Expect(err).NotTo(HaveOccurred())
	provider.ExecConfig.Args = []string{"-test.run=none"}
	report := check.Profile(t.Context(), profileOf("c1", server.cluster()), check.Options{Method: newResolver(t, credentials.Options{}, provider)})
	g.Expect(report.Plugin.Version + report.Plugin.SHA256).NotTo(BeEmpty())
	g.Expect(report.Step(check.StepCredential).Cause).To(Equal(check.InvalidOutput))
}

// Each fault has a cause of its own, with a remedy.
func TestFaults(t *testing.T) {
	good := working(t)
	own := func(change certificate) func(*testing.T) clientcmdv1.Cluster {
		return func(t *testing.T) clientcmdv1.Cluster {
			return newAPIServer(t, &apiServer{user: "jane"}, change).cluster()
		}
	}
	healthy := own(nil)
	answering := func(handler http.HandlerFunc) func(*testing.T) clientcmdv1.Cluster {
		return func(t *testing.T) clientcmdv1.Cluster {
			return newAPIServer(t, &apiServer{override: handler}, nil).cluster()
		}
	}
	for _, tc := range []struct {
		name     string
		provider providerfile.Provider
		cluster  func(*testing.T) clientcmdv1.Cluster
		step     check.StepName
		cause    check.Cause
		message  string
		also     map[check.StepName]check.Status // of other steps
	}{
		{
			"no provider of the file", providerfile.Provider{Name: "other", ExecConfig: good.ExecConfig}, healthy,
			check.StepProvider, check.NoProvider, `the profile lists access providers "script"`, map[check.StepName]check.Status{check.StepServer: check.Skipped},
		},
		{
			"a server that is not allowed", providerfile.Provider{Name: "script", ExecConfig: good.ExecConfig, Rollcall: providerfile.Extensions{AllowedServers: []string{"*.example.com"}}}, healthy,
			check.StepProvider, check.Denied, "allowedServers", nil,
		},
		{
			"a profile without a server", good, func(*testing.T) clientcmdv1.Cluster { return clientcmdv1.Cluster{} },
			check.StepProvider, check.InvalidProfile, "must not be empty", nil,
		},
		{
			"a plugin that is missing", changed(good, func(p *providerfile.Provider) {
				p.ExecConfig.Command, p.ExecConfig.InstallHint = "/absent/plugin", "apt install it"
			}), healthy,
			check.StepPlugin, check.PluginMissing, "/absent/plugin", map[check.StepName]check.Status{check.StepServer: check.OK, check.StepTLS: check.OK, check.StepCredential: check.Skipped},
		},
		{
			"a plugin that fails", scriptPlugin(t, "echo broken password=hunter2x9 >&2; exit 7"), healthy,
			check.StepCredential, check.PluginFailed, "exit code 7: broken password=[redacted]", map[check.StepName]check.Status{check.StepServer: check.OK, check.StepIdentity: check.Skipped},
		},
		{
			"a plugin that hangs", scriptPlugin(t, "exec sleep 600"), healthy,
			check.StepCredential, check.PluginTimeout, "no credential within", map[check.StepName]check.Status{check.StepServer: check.OK, check.StepTLS: check.OK},
		},
		{
			"a plugin that prints something else", scriptPlugin(t, "echo hello"), healthy,
			check.StepCredential, check.InvalidOutput, "not JSON", nil,
		},
		{
			"a credential that has expired", scriptPlugin(t, "echo '"+credentialOf(token, time.Now().Add(-time.Hour))+"'"), healthy,
			check.StepCredential, check.Expired, "has expired", nil,
		},
		{
			"an expired certificate", good, own(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }),
			check.StepTLS, check.CertificateExpired, `certificate "api" expired`, map[check.StepName]check.Status{check.StepServer: check.OK, check.StepIdentity: check.Skipped},
		},
		{
			"a certificate of tomorrow", good, own(func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
			}),
			check.StepTLS, check.CertificateNotYetValid, "is not valid before", nil,
		},
		{
			"a certificate for another name", good, own(func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = []string{"api.example.com"}, nil }),
			check.StepTLS, check.WrongServerName, "is not for 127.0.0.1, but for api.example.com", nil,
		},
		{
			"an unknown authority", good, func(t *testing.T) clientcmdv1.Cluster {
				cluster := healthy(t)
				cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: newCertificate(t, nil).Certificate[0]})
				return cluster
			},
			check.StepTLS, check.UnknownAuthority, "is not from certificate-authority-data", map[check.StepName]check.Status{check.StepServer: check.OK},
		},
		{
			"an unknown authority, and none in the profile", good, func(t *testing.T) clientcmdv1.Cluster {
				cluster := healthy(t)
				cluster.CertificateAuthorityData = nil
				return cluster
			},
			check.StepTLS, check.UnknownAuthority, "the authorities of this machine", nil,
		},
		{
			"a server without TLS", good, func(t *testing.T) clientcmdv1.Cluster {
				plain := httptest.NewServer(http.NotFoundHandler())
				t.Cleanup(plain.Close)
				return clientcmdv1.Cluster{Server: "https://" + plain.Listener.Addr().String()}
			},
			check.StepTLS, check.NotTLS, "does not use TLS", nil,
		},
		{
			"a port that refuses connections", good, func(t *testing.T) clientcmdv1.Cluster {
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				_ = listener.Close()
				return clientcmdv1.Cluster{Server: "https://" + listener.Addr().String()}
			},
			check.StepServer, check.ConnectionRefused, "connection refused", map[check.StepName]check.Status{check.StepCredential: check.OK, check.StepTLS: check.Skipped, check.StepIdentity: check.Skipped},
		},
		{
			"a host that does not exist", good, func(*testing.T) clientcmdv1.Cluster { return clientcmdv1.Cluster{Server: "https://absent.invalid"} },
			check.StepServer, check.HostNotFound, "absent.invalid", nil,
		},
		{
			"a proxy that refuses connections", good, func(t *testing.T) clientcmdv1.Cluster {
				cluster := healthy(t)
				cluster.ProxyURL = "http://127.0.0.1:1"
				return cluster
			},
			check.StepServer, check.ProxyFailed, "127.0.0.1:1", nil,
		},
		{
			"a proxy that forbids the server", good, func(t *testing.T) clientcmdv1.Cluster {
				proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
				t.Cleanup(proxy.Close)
				cluster := healthy(t)
				cluster.ProxyURL = proxy.URL
				return cluster
			},
			check.StepServer, check.ProxyFailed, "Forbidden", map[check.StepName]check.Status{check.StepTLS: check.Skipped},
		},
		{
			"a server that does not respond", good, answering(hang),
			check.StepServer, check.NoResponse, "no response within", map[check.StepName]check.Status{check.StepTLS: check.OK, check.StepIdentity: check.Skipped},
		},
		{
			"a server that refuses the handshake", good, func(t *testing.T) clientcmdv1.Cluster {
				server := httptest.NewUnstartedServer(http.NotFoundHandler())
				server.Config.ErrorLog = log.New(io.Discard, "", 0)
				server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errors.New("refused") }}
				server.StartTLS()
				t.Cleanup(server.Close)
				return clientcmdv1.Cluster{Server: server.URL}
			},
			check.StepTLS, check.TLSFailed, "TLS handshake with 127.0.0.1", map[check.StepName]check.Status{check.StepServer: check.OK},
		},
		{
			"a server that never ends the handshake", good, func(t *testing.T) clientcmdv1.Cluster {
				listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = listener.Close() })
				return clientcmdv1.Cluster{Server: "https://" + listener.Addr().String()}
			},
			check.StepServer, check.NoResponse, "no response within", map[check.StepName]check.Status{check.StepTLS: check.Skipped},
		},
		{
			"a server that closes the connection", good, func(t *testing.T) clientcmdv1.Cluster {
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					for {
						conn, err := listener.Accept()
						if err != nil {
							return
						}
						_ = conn.Close()
					}
				}()
				t.Cleanup(func() {
					_ = listener.Close()
					<-done
				})
				return clientcmdv1.Cluster{Server: "https://" + listener.Addr().String()}
			},
			check.StepServer, check.NoResponse, "closed the connection", map[check.StepName]check.Status{check.StepTLS: check.Skipped},
		},
		{
			"a gateway without a backend", good, answering(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }),
			check.StepServer, check.ServerError, "502 Bad Gateway", nil,
		},
		{
			"a credential that the cluster refuses", scriptPlugin(t, "echo '"+credentialOf("other", time.Now().Add(time.Hour))+"'"), healthy,
			check.StepIdentity, check.Unauthorized, "401", map[check.StepName]check.Status{check.StepServer: check.OK, check.StepPermissions: check.Skipped},
		},
		{
			"a web server", good, answering(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>welcome</html>") }),
			check.StepIdentity, check.NotKubernetes, "", nil,
		},
		{
			"a web server without such a page", good, answering(http.NotFound),
			check.StepIdentity, check.NotKubernetes, "", nil,
		},
		{
			"a cluster that ignores the credential", good, func(t *testing.T) clientcmdv1.Cluster {
				return newAPIServer(t, &apiServer{user: "system:anonymous"}, nil).cluster()
			},
			check.StepIdentity, check.Anonymous, "anonymous", nil,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			method := newResolver(t, credentials.Options{}, tc.provider)
			report := check.Profile(t.Context(), profileOf("c1", tc.cluster(t)), check.Options{Method: method, Timeout: 2 * time.Second})
			step := report.Failure()
			g.Expect(step).NotTo(BeNil(), "%+v", report)
			g.Expect(step.Name).To(Equal(tc.step), "%+v", report)
			g.Expect(step.Cause).To(Equal(tc.cause), step.Message)
			g.Expect(step.Message).To(ContainSubstring(tc.message))
			g.Expect(step.Remedy).NotTo(BeEmpty())
			g.Expect(report.OK).To(BeFalse())
			for name, status := range tc.also {
				g.Expect(report.Step(name).Status).To(Equal(status), "%s: %+v", name, report.Step(name))
			}
		})
	}
}

func changed(provider providerfile.Provider, change func(*providerfile.Provider)) providerfile.Provider {
	provider.ExecConfig = provider.ExecConfig.DeepCopy()
	change(&provider)
	return provider
}

// method is a credentials.Method of a configuration.
type method struct{ config rest.Config }

func (m method) Resolve(context.Context, *inventory.Profile) (*credentials.Access, error) {
	return credentials.FromRESTConfig(&m.config), nil
}

func TestOtherMethods(t *testing.T) {
	server := newAPIServer(t, &apiServer{user: "jane"}, nil)
	ca := server.cluster().CertificateAuthorityData
	plain := httptest.NewServer(server)
	t.Cleanup(plain.Close)
	for name, tc := range map[string]struct {
		config rest.Config
		ok     bool
		steps  map[check.StepName]check.Status
	}{
		"a token": {
			rest.Config{Host: server.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, true,
			map[check.StepName]check.Status{check.StepPlugin: check.Skipped, check.StepCredential: check.OK, check.StepTLS: check.OK},
		},
		"no verification of the certificate": {
			rest.Config{Host: server.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, true,
			map[check.StepName]check.Status{check.StepTLS: check.Skipped, check.StepIdentity: check.OK},
		},
		"plain http": { // client-go sends the token all the same
			rest.Config{Host: plain.URL, BearerToken: token}, true,
			map[check.StepName]check.Status{check.StepServer: check.OK, check.StepTLS: check.Skipped},
		},
		"an own dial function": {
			rest.Config{
				Host: "https://localhost", BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
				Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
				},
			}, true,
			map[check.StepName]check.Status{check.StepServer: check.OK, check.StepTLS: check.OK, check.StepIdentity: check.OK},
		},
		"a password in the URL": {
			rest.Config{Host: "https://u:hunter2@" + server.Listener.Addr().String(), TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, false,
			map[check.StepName]check.Status{check.StepCredential: check.OK, check.StepIdentity: check.Failed},
		},
		"no server": {
			rest.Config{Host: "https://", BearerToken: token}, false,
			map[check.StepName]check.Status{check.StepIdentity: check.Skipped},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			report := check.Profile(t.Context(), profileOf("c1", clientcmdv1.Cluster{}), check.Options{Method: method{tc.config}, Timeout: 5 * time.Second})
			g.Expect(report.OK).To(Equal(tc.ok), "%+v", report)
			for name, status := range tc.steps {
				g.Expect(report.Step(name).Status).To(Equal(status), "%+v", report.Step(name))
			}
			g.Expect(fmt.Sprint(report)).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring(token)))
		})
	}
}

// client-go does not end a plugin with the context. The check ends all the same.
func TestPluginOfClientGo(t *testing.T) {
	g := NewWithT(t)
	server := newAPIServer(t, &apiServer{user: "jane"}, nil)
	dir := t.TempDir()
	release, ended := filepath.Join(dir, "release"), filepath.Join(dir, "ended")
	hanging := scriptPlugin(t, `while [ -d "`+dir+`" ] && [ ! -e "`+release+`" ]; do sleep 0.05; done; : > "`+ended+`"; exit 1`).ExecConfig
	hanging.InteractiveMode = clientcmdapi.NeverExecInteractiveMode
	config := rest.Config{Host: server.URL, ExecProvider: hanging, TLSClientConfig: rest.TLSClientConfig{CAData: server.cluster().CertificateAuthorityData}}
	start := time.Now()
	report := check.Profile(t.Context(), profileOf("c1", clientcmdv1.Cluster{}), check.Options{Method: method{config}, Timeout: time.Second})
	g.Expect(time.Since(start)).To(BeNumerically("<", 10*time.Second))
	g.Expect(report.Step(check.StepIdentity).Cause).To(Equal(check.NoResponse))
	g.Expect(os.WriteFile(release, nil, 0o600)).To(Succeed())
	g.Eventually(ended).WithTimeout(10 * time.Second).Should(BeAnExistingFile())
}
