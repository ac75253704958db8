// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"net/http"
	"net/url"
	"testing"
)

func TestMoved(t *testing.T) {
	for _, test := range []struct {
		name, from, to, request, want string
	}{
		{"the same server", "https://a", "https://a", "https://a/api", "https://a/api"},
		{"another host", "https://a", "https://b:6443", "https://a/api/v1?watch=1", "https://b:6443/api/v1?watch=1"},
		{"another host, escaped path", "https://a", "https://b", "https://a/api/x%2Fy", "https://b/api/x%2Fy"},
		{"from a path", "https://a/one", "https://b", "https://a/one/api", "https://b/api"},
		{"to a path", "https://a", "https://a/one", "https://a/api", "https://a/one/api"},
		{"from a path to another", "https://a/one", "https://a/two%2Fx", "https://a/one/api", "https://a/two%2Fx/api"},
		{"a path beside that of the server", "https://a/one", "https://b", "https://a/one-and-a-half/api", "https://a/one-and-a-half/api"},
		{"a host that is not the server's", "https://a", "https://b", "https://c/api", "https://c/api"},
		{"a scheme that is not the server's", "https://a", "https://b", "http://a/api", "http://a/api"},
	} {
		t.Run(test.name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.request, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			got := moved(request, parse(t, test.from), parse(t, test.to))
			if got.URL.String() != test.want {
				t.Errorf("got %s, want %s", got.URL, test.want)
			}
			if request.URL.String() != test.request {
				t.Errorf("the request was changed to %s", request.URL)
			}
			if got.Host != "" && got.Host != got.URL.Host {
				t.Errorf("the Host header is %s", got.Host)
			}
		})
	}
}

func parse(t *testing.T, server string) *url.URL {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
