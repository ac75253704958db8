// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
)

const (
	maxServer     = 2048 // as in profiles
	maxServerName = 253

	// execExtension is the extension of a cluster that has the config of the plugin.
	execExtension = "client.authentication.k8s.io/exec"
)

// config returns the configuration of the context. Files become part of it.
func (c *Context) config(read ReadFile) (*rest.Config, error) {
	server, proxy, err := c.urls()
	if err != nil {
		return nil, err
	}
	config := &rest.Config{Host: server.String(), DisableCompression: c.cluster.DisableCompression, QPS: -1}
	if proxy != nil {
		config.Proxy = http.ProxyURL(proxy)
	}
	if err := c.setImpersonation(config); err != nil {
		return nil, err
	}
	if server.Scheme != "https" {
		// As with kubectl, no credential is sent unencrypted.
		return config, nil
	}
	if err := c.setTLS(config, read); err != nil {
		return nil, err
	}
	return config, c.setUser(config, read)
}

// urls returns the URLs of the server and of the proxy, which may be nil. Errors do not
// repeat them, as they may contain passwords.
func (c *Context) urls() (server, proxy *url.URL, err error) {
	text := c.cluster.Server
	switch {
	case text == "":
		return nil, nil, c.clusterError("server", invalid("must be set"))
	case len(text) > maxServer:
		return nil, nil, c.clusterError("server", invalid(fmt.Sprintf("must not be longer than %d characters", maxServer)))
	case !strings.Contains(text, "://"):
		text = "https://" + text // as client-go
		if !c.hasTLS() {
			text = "http://" + c.cluster.Server
		}
	}
	server, err = url.Parse(text)
	if err != nil || server.Hostname() == "" || server.Scheme != "https" && server.Scheme != "http" {
		return nil, nil, c.clusterError("server", invalid("is not a URL like https://host:port"))
	}
	if server.User != nil {
		return nil, nil, c.clusterError("server", invalid("must not contain user information: set username and password of the user"))
	}
	server.RawQuery, server.ForceQuery, server.Fragment, server.RawFragment = "", false, "", ""
	if c.cluster.ProxyURL == "" {
		return server, nil, nil
	}
	proxy, err = url.Parse(c.cluster.ProxyURL)
	if err != nil || proxy.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
		return nil, nil, c.clusterError("proxy-url", invalid("is not an http, https or socks5 URL with a host"))
	}
	return server, proxy, nil
}

// hasTLS reports whether client-go uses https for a server without a scheme.
func (c *Context) hasTLS() bool {
	return c.cluster.CertificateAuthority != "" || len(c.cluster.CertificateAuthorityData) > 0 || c.cluster.InsecureSkipTLSVerify ||
		c.user.ClientCertificate != "" || len(c.user.ClientCertificateData) > 0
}

func (c *Context) setImpersonation(config *rest.Config) error {
	user := &c.user
	if user.Impersonate == "" && (user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0) {
		return c.userError("as", invalid("must be set with as-uid, as-groups and as-user-extra"))
	}
	config.Impersonate = rest.ImpersonationConfig{
		UserName: user.Impersonate, UID: user.ImpersonateUID,
		Groups: slices.Clone(user.ImpersonateGroups), Extra: maps.Clone(user.ImpersonateUserExtra),
	}
	return nil
}

func (c *Context) setTLS(config *rest.Config, read ReadFile) error {
	cluster := &c.cluster
	ca, err := c.content("certificate-authority", cluster.CertificateAuthority, cluster.CertificateAuthorityData, read)
	switch {
	case err != nil:
		return c.clusterError("certificate-authority", err)
	case len(ca) > 0 && cluster.InsecureSkipTLSVerify:
		return c.clusterError("insecure-skip-tls-verify", invalid("excludes a certificate authority: remove one of them"))
	case len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca):
		return c.clusterError("certificate-authority", invalid("has no certificate in PEM format"))
	case len(cluster.TLSServerName) > maxServerName:
		return c.clusterError("tls-server-name", invalid(fmt.Sprintf("must not be longer than %d characters", maxServerName)))
	}
	config.TLSClientConfig = rest.TLSClientConfig{CAData: ca, ServerName: cluster.TLSServerName, Insecure: cluster.InsecureSkipTLSVerify}
	return nil
}

// setUser sets the credential.
func (c *Context) setUser(config *rest.Config, read ReadFile) error {
	user := &c.user
	if err := c.checkMethods(); err != nil {
		return err
	}
	config.Username, config.Password = user.Username, user.Password
	if err := c.setToken(config, read); err != nil {
		return err
	}
	if err := c.setCertificate(config, read); err != nil {
		return err
	}
	if user.AuthProvider != nil {
		config.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: user.AuthProvider.Name, Config: maps.Clone(user.AuthProvider.Config)}
		config.AuthConfigPersister = notPersisted{}
	}
	if user.Exec != nil {
		config.ExecProvider = c.exec()
	}
	return nil
}

// checkMethods refuses what client-go would refuse, or use in part.
func (c *Context) checkMethods() error {
	user := &c.user
	var methods []string
	for _, m := range []struct {
		name string
		set  bool
	}{
		{"token", user.Token != "" || user.TokenFile != ""},
		{"username", user.Username != "" || user.Password != ""},
		{"auth-provider", user.AuthProvider != nil},
		{"exec", user.Exec != nil},
	} {
		if m.set {
			methods = append(methods, m.name)
		}
	}
	if user.Exec != nil && (user.ClientCertificate != "" || len(user.ClientCertificateData) > 0) {
		methods = append(methods, "client-certificate")
	}
	if len(methods) > 1 {
		return c.userError(methods[0], invalid("cannot be combined with "+strings.Join(methods[1:], " and ")+": keep one of them"))
	}
	return nil
}

func (c *Context) setToken(config *rest.Config, read ReadFile) error {
	token, field := c.user.Token, "token"
	if c.user.TokenFile != "" {
		content, err := c.content("tokenFile", c.user.TokenFile, nil, read)
		if err != nil && token == "" {
			return c.userError("tokenFile", err)
		}
		if err == nil {
			token, field = string(content), "tokenFile"
		}
	}
	config.BearerToken = strings.TrimSpace(token)
	switch {
	case config.BearerToken == "" && (c.user.Token != "" || c.user.TokenFile != ""):
		return c.userError(field, invalid("is empty"))
	case !rules.IsHeaderSafe(config.BearerToken):
		return c.userError(field, invalid("contains characters that a token cannot have"))
	}
	return nil
}

func (c *Context) setCertificate(config *rest.Config, read ReadFile) error {
	certificate, err := c.content("client-certificate", c.user.ClientCertificate, c.user.ClientCertificateData, read)
	if err != nil {
		return c.userError("client-certificate", err)
	}
	key, err := c.content("client-key", c.user.ClientKey, c.user.ClientKeyData, read)
	if err != nil {
		return c.userError("client-key", err)
	}
	switch {
	case len(certificate) == 0 && len(key) == 0:
		return nil
	case len(certificate) == 0:
		return c.userError("client-certificate", invalid("must be set with client-key"))
	case len(key) == 0:
		return c.userError("client-key", invalid("must be set with client-certificate"))
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return c.userError("client-certificate", invalid("does not belong to client-key, or one of them is not in PEM format"))
	}
	config.CertData, config.KeyData = certificate, key
	return nil
}

// content returns the data or, if there is none, the content of the file.
func (c *Context) content(field, path string, data []byte, read ReadFile) ([]byte, error) {
	if len(data) > 0 || path == "" {
		return data, nil
	}
	content, err := read(c.resolve(path))
	switch {
	case err != nil:
		return nil, &fault{ErrInvalid, err.Error()}
	case len(content) == 0:
		return nil, invalid("the file of " + field + " is empty")
	}
	return content, nil
}

func (c *Context) exec() *clientcmdapi.ExecConfig {
	user := c.user.Exec
	exec := &clientcmdapi.ExecConfig{
		Command: user.Command, Args: slices.Clone(user.Args), APIVersion: user.APIVersion, InstallHint: user.InstallHint,
		ProvideClusterInfo: user.ProvideClusterInfo, InteractiveMode: clientcmdapi.ExecInteractiveMode(user.InteractiveMode),
	}
	if rules.IsPath(exec.Command) {
		exec.Command = filepath.Clean(c.resolve(exec.Command))
	}
	for _, variable := range user.Env {
		exec.Env = append(exec.Env, clientcmdapi.ExecEnvVar{Name: variable.Name, Value: variable.Value})
	}
	for i := range c.cluster.Extensions {
		if extension := &c.cluster.Extensions[i]; extension.Name == execExtension {
			exec.Config = &runtime.Unknown{Raw: slices.Clone(extension.Extension.Raw), ContentType: runtime.ContentTypeJSON}
		}
	}
	return exec
}

// notPersisted ignores what an auth-provider wants to write to the kubeconfig.
type notPersisted struct{}

// Persist implements rest.AuthProviderConfigPersister.
func (notPersisted) Persist(map[string]string) error { return nil }
