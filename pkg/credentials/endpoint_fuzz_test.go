// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

func FuzzEndpoint(f *testing.F) {
	f.Add("https://c1.example.com:6443/a", "http://proxy:3128")
	f.Add("https://evil.org/.example.com", "socks5://[::1]")
	f.Add("https://me:x@c1.example.com", "http://me:x@proxy")
	f.Add("https://evil.org%2f.example.com", "")
	provider := &providerfile.Provider{Rollcall: providerfile.Extensions{
		AllowedServers: []string{"*.example.com"}, AllowedProxies: []string{"*"},
	}}
	f.Fuzz(func(t *testing.T, server, proxy string) {
		e, err := newEndpoint(&clientcmdv1.Cluster{Server: server, ProxyURL: proxy}, provider)
		if err != nil {
			return
		}
		// Clients must take from the text the very server that was allowed.
		base, _, err := rest.DefaultServerUrlFor(&rest.Config{Host: e.Server})
		switch {
		case err != nil:
			t.Errorf("client-go does not read %q: %v", e.Server, err)
		case base.Scheme != "https" || base.User != nil || !allowsServer(provider.Rollcall.AllowedServers, base):
			t.Errorf("%q leads to %s", e.Server, base)
		case !strings.HasSuffix(strings.ToLower(base.Hostname()), ".example.com") && base.Port() == "":
			t.Errorf("%q is allowed", e.Server)
		}
		if proxy == "" {
			return
		}
		if via, err := e.proxy()(nil); err != nil || via.Hostname() == "" || via.User != nil {
			t.Errorf("proxy %q: %v, %v", proxy, via, err)
		}
	})
}
