// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

func FuzzAudience(f *testing.F) {
	f.Add("fleet-*=https://*.example.com:6443", "https://c1.example.com:6443", `{"audience":"fleet-c1"}`)
	f.Add("https://*=https://*", "https://C1:443/", `{"audience":"https://c1"}`)
	f.Add("c1=https://[::1]:6443/a/", "https://[::1]:6443/a", `{"audience":"c1"}`)
	f.Add("a*b=*", "https://x", `{"audience":"ab"}`)
	f.Add("a=b=https://x/=https://y", "https://y?", `{"audience":"a=b=https://x/"}`)
	f.Fuzz(func(t *testing.T, rule, server, config string) {
		allowed, err := parseAllowedAudience(rule)
		if err != nil {
			return
		}
		if again, err := parseAllowedAudience(allowed.String()); err != nil || again != allowed {
			t.Fatalf("%q becomes %q, %v", allowed, again, err)
		}
		p := &Plugin{AllowedAudiences: []AllowedAudience{allowed}}
		request := func(server string) plugin.Request {
			return plugin.Request{Cluster: &plugin.Cluster{Server: server, Config: []byte(config)}}
		}
		audience, err := p.audience(request(server))
		if err != nil {
			return
		}
		if audience == "" || strings.ContainsAny(audience, " \r\n") {
			t.Errorf("accepted audience %q", audience)
		}
		if allowed.Server == AnyServer {
			return
		}
		// The same audience must not be allowed for another server.
		spelling, err := normalize(server)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"https://evil", spelling + ".evil", spelling + "/evil", "https://evil/" + strings.TrimPrefix(spelling, "https://")} {
			if _, err := p.audience(request(other)); err == nil {
				t.Errorf("%q allows %q for %q and %q", rule, audience, server, other)
			}
		}
	})
}

func FuzzClaims(f *testing.F) {
	f.Add("e30.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6YTpiIiwiYXVkIjpbIngiXX0.x")
	f.Fuzz(func(t *testing.T, token string) {
		if owner, err := ownerOf(token); err == nil && strings.Count(owner.String(), "/") != 1 {
			t.Errorf("accepted %q", owner)
		}
		if c, err := check(token, "c1"); err == nil && c.Expiry.IsZero() {
			t.Error("accepted a token without an expiry")
		}
	})
}
