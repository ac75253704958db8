// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// seen is what a server sees of a request.
type seen struct {
	Authorization, User, Group, ServerName, Certificate string
}

// echo returns a server that answers with what it sees, and its CA.
func echo(t *testing.T) (address string, ca []byte) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := seen{
			Authorization: r.Header.Get("Authorization"), User: r.Header.Get("Impersonate-User"),
			Group: r.Header.Get("Impersonate-Group"), ServerName: r.TLS.ServerName,
		}
		if len(r.TLS.PeerCertificates) > 0 {
			found.Certificate = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_ = json.NewEncoder(w).Encode(found)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// ask sends a request over the access and releases it.
func ask(access *credentials.Access) (seen, error) {
	defer access.Release()
	client, err := rest.HTTPClientFor(access.RESTConfig())
	if err != nil {
		return seen{}, err
	}
	response, err := client.Get(access.Server())
	if err != nil {
		return seen{}, err
	}
	defer response.Body.Close()
	var found seen
	return found, json.NewDecoder(response.Body).Decode(&found)
}

func write(t *testing.T, path string, mode os.FileMode, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// plugin prints a token: its first argument and the given variable.
const plugin = `#!/bin/sh
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s-%s-%s"}}' \
  "$1" "$SUFFIX" "$(printf %s "$KUBERNETES_EXEC_INFO" | sed -n 's/.*"config":{"a":"\([^"]*\)"}.*/\1/p')"
`

func TestAccess(t *testing.T) {
	address, ca := echo(t)
	certificate, key := mctest.New(t).ClientCertificate("certificate-user")
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(bin, "plugin"), 0o700, plugin)
	write(t, filepath.Join(dir, "token"), 0o600, "of-file\n")
	write(t, filepath.Join(dir, "ca.crt"), 0o600, string(ca))
	write(t, filepath.Join(dir, "tls.crt"), 0o600, string(certificate))
	write(t, filepath.Join(dir, "tls.key"), 0o600, string(key))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))

	cluster := fmt.Sprintf("server: %q, certificate-authority-data: %s", address, encoded(string(ca)))
	execOf := func(command string) string {
		return fmt.Sprintf("exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, command: %q, args: [one], env: [{name: SUFFIX, value: two}], provideClusterInfo: true}", command)
	}
	allow := func(dirs []string, commands ...string) kubeconfig.Options {
		options := kubeconfig.Options{Exec: credentials.Options{PluginDirs: dirs}}
		for _, command := range commands {
			options.Exec.AllowedCommands = append(options.Exec.AllowedCommands, credentials.AllowedCommand{Command: command})
		}
		return options
	}
	strict, trusted := kubeconfig.Options{}, kubeconfig.Options{Trusted: true}
	restricted := allow(nil, "other")
	restricted.Trusted = true
	info := cluster + `, extensions: [{name: client.authentication.k8s.io/exec, extension: {a: b}}]`
	host := seen{}
	for _, test := range []struct {
		name          string
		options       kubeconfig.Options
		cluster, user string
		want          seen
		err           string
	}{
		{"anonymous", strict, cluster, "", host, ""},
		{"token", strict, cluster, "token: t", seen{Authorization: "Bearer t"}, ""},
		{"basic", strict, cluster, "username: u, password: p", seen{Authorization: "Basic dTpw"}, ""},
		{"impersonation", strict, cluster, "token: t, as: other, as-groups: [g]", seen{Authorization: "Bearer t", User: "other", Group: "g"}, ""},
		{"certificate", strict, cluster, "client-certificate-data: " + encoded(string(certificate)) + ", client-key-data: " + encoded(string(key)), seen{Certificate: "certificate-user"}, ""},
		{"tls-server-name", strict, cluster + ", tls-server-name: example.com", "token: t", seen{Authorization: "Bearer t", ServerName: "example.com"}, ""},
		{"insecure", kubeconfig.Options{AllowInsecureSkipTLSVerify: true}, fmt.Sprintf("insecure-skip-tls-verify: true, server: %q", address), "token: t", seen{Authorization: "Bearer t"}, ""},
		{"relative files", trusted, fmt.Sprintf("certificate-authority: ca.crt, server: %q", address), "client-certificate: tls.crt, client-key: tls.key, tokenFile: token", seen{Authorization: "Bearer of-file", Certificate: "certificate-user"}, ""},
		{"a token if its file is missing", trusted, cluster, "token: t, tokenFile: missing", seen{Authorization: "Bearer t"}, ""},
		{"a file and a token", trusted, cluster, "token: t, tokenFile: token", seen{Authorization: "Bearer of-file"}, ""},
		{"absolute files", kubeconfig.Options{AllowPaths: true}, cluster, fmt.Sprintf("tokenFile: %q", filepath.Join(dir, "token")), seen{Authorization: "Bearer of-file"}, ""},
		{"exec in PATH", trusted, cluster, execOf("plugin"), seen{Authorization: "Bearer one-two-"}, ""},
		{"exec with a config", trusted, info, execOf("plugin"), seen{Authorization: "Bearer one-two-b"}, ""},
		{"exec of a relative path", trusted, cluster, execOf("bin/plugin"), seen{Authorization: "Bearer one-two-"}, ""},
		{"exec and impersonation", trusted, cluster, "as: other, as-groups: [g], " + execOf("plugin"), seen{Authorization: "Bearer one-two-", User: "other", Group: "g"}, ""},
		{"exec of an allowed path", allow(nil, filepath.Join(bin, "plugin")), cluster, execOf(filepath.Join(bin, "plugin")), seen{Authorization: "Bearer one-two-"}, ""},
		{"exec of an allowed name", allow([]string{bin}, "plugin"), cluster, execOf("plugin"), seen{Authorization: "Bearer one-two-"}, ""},
		{"exec of an allowed name without a folder", allow(nil, "plugin"), cluster, execOf("plugin"), host, "plugin folder"},
		{"exec of a command that is not listed", restricted, cluster, execOf("plugin"), host, "not among the allowed commands"},
		{"exec of a missing command", trusted, cluster, execOf("does-not-exist"), host, "does-not-exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			resolver, err := kubeconfig.New(test.options)
			g.Expect(err).NotTo(HaveOccurred())
			defer resolver.Close()
			parsed, err := kubeconfig.Parse("file", dir, []byte(with(test.cluster, test.user)))
			g.Expect(err).NotTo(HaveOccurred())
			c, err := parsed.Context("")
			g.Expect(err).NotTo(HaveOccurred())
			var found seen
			access, err := resolver.Access(inventory.Key{Name: "x"}, c, nil)
			if err == nil {
				found, err = ask(access)
			}
			if test.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(Equal(test.want))
		})
	}
}

func TestFilesOfContext(t *testing.T) {
	g := NewWithT(t)
	parsed, err := kubeconfig.Parse("file", "/dir", []byte(with(server+", certificate-authority: ca",
		"client-certificate: /b, client-key: /b, client-certificate-data: aGVsbG8=, tokenFile: token")))
	g.Expect(err).NotTo(HaveOccurred())
	c, err := parsed.Context("a")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Files()).To(Equal([]string{"/b", "/dir/ca", "/dir/token"}))

	resolver, err := kubeconfig.New(kubeconfig.Options{Trusted: true})
	g.Expect(err).NotTo(HaveOccurred())
	defer resolver.Close()
	var read []string
	_, err = resolver.Access(inventory.Key{}, c, func(path string) ([]byte, error) {
		read = append(read, path)
		return nil, errors.New("broken")
	})
	g.Expect(err).To(MatchError(`file: context "a": cluster "c": certificate-authority: broken`))
	g.Expect(read).To(Equal([]string{"/dir/ca"}))
}

func TestProxy(t *testing.T) {
	g := NewWithT(t)
	address, ca := echo(t)
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.Host + " " + r.Header.Get("Proxy-Authorization")
		up, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			return
		}
		down, _, _ := w.(http.Hijacker).Hijack()
		fmt.Fprint(down, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			_, _ = io.Copy(up, down)
			_ = up.Close()
		}()
		_, _ = io.Copy(down, up)
		_ = down.Close()
	}))
	defer proxy.Close()
	text := with(fmt.Sprintf("server: %q, certificate-authority-data: %s, proxy-url: %q", address, encoded(string(ca)),
		"http://user:"+secret+"@"+proxy.Listener.Addr().String()), "token: t")
	resolver, err := kubeconfig.New(kubeconfig.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	defer resolver.Close()
	parsed, err := kubeconfig.Parse("Secret", "", []byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	c, err := parsed.Context("")
	g.Expect(err).NotTo(HaveOccurred())
	cluster, err := resolver.Cluster(c, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.ProxyURL).To(Equal("http://"+proxy.Listener.Addr().String()), "without the password")
	access, err := resolver.Access(inventory.Key{}, c, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ask(access)).To(Equal(seen{Authorization: "Bearer t"}))
	g.Expect(asked).To(Equal("CONNECT " + address[len("https://"):] + " Basic " + encoded("user:"+secret)))
}

func TestUnencryptedServer(t *testing.T) {
	g := NewWithT(t)
	authorization := "none"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		fmt.Fprint(w, "{}")
	}))
	defer s.Close()
	resolver, err := kubeconfig.New(kubeconfig.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	defer resolver.Close()
	parsed, err := kubeconfig.Parse("Secret", "", []byte(with(fmt.Sprintf("server: %q", s.URL), "token: t")))
	g.Expect(err).NotTo(HaveOccurred())
	c, err := parsed.Context("")
	g.Expect(err).NotTo(HaveOccurred())
	access, err := resolver.Access(inventory.Key{}, c, nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = ask(access)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(authorization).To(BeEmpty())
}
