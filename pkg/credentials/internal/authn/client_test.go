// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestClientTransport(t *testing.T) {
	for _, tc := range []struct {
		name string
		tls  string // of the next backend
		want any
	}{
		{"with the same TLS settings", "same", nil},
		{"with other TLS settings", "other", errOtherTLS},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			unused := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("not to be used") })
			transport := NewTransport(&fakeBackend{server: "https://a", transport: unused, tls: "same"})
			client := transport.Wrapper(transport.Backend(), nil, false)(echo)
			g.Expect(send(g, client, newRequest(t, http.MethodGet, "https://a/", nil))).To(Equal("https://a/"))
			g.Expect(transport.Switch(NewTransport(&fakeBackend{server: "https://b", transport: unused, tls: tc.tls}))).To(Succeed())
			req := newRequest(t, http.MethodGet, "https://a/", nil)
			if tc.want != nil {
				g.Expect(fail(client, req)).To(MatchError(tc.want))
				client = transport.Wrapper(transport.Backend(), nil, false)(echo)
			}
			g.Expect(send(g, client, req)).To(Equal("https://b/"))
		})
	}
}

func TestUpgradeIsNotRepeated(t *testing.T) {
	for _, tc := range []struct {
		name    string
		upgrade bool
		own     bool // the client has its own transport
		want    int
	}{
		{"a request that reads", false, false, 2},
		{"an upgrade", true, false, 1},
		{"an upgrade by the client's own transport", true, true, 1},
		{"a request by the client's own transport", false, true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var transport *Transport
			sent := 0
			base := roundTripper(func(*http.Request) (*http.Response, error) {
				if sent++; sent == 1 {
					g.Expect(transport.Switch(NewTransport(&fakeBackend{server: "https://b", transport: roundTripper(
						func(*http.Request) (*http.Response, error) {
							sent++
							return nil, io.ErrUnexpectedEOF
						})}))).To(Succeed())
				}
				return nil, io.ErrUnexpectedEOF
			})
			transport = NewTransport(&fakeBackend{server: "https://a", transport: base})
			client := clientOf(transport)
			if tc.own {
				client = transport.Wrapper(transport.Backend(), nil, false)(base)
			}
			req := newRequest(t, http.MethodGet, "https://a/exec", nil)
			if tc.upgrade {
				req.Header.Set("Connection", "Upgrade")
				req.Header.Set("Upgrade", "websocket")
			}
			g.Expect(fail(client, req)).To(MatchError(io.ErrUnexpectedEOF))
			g.Expect(sent).To(Equal(tc.want))
		})
	}
}

func TestAddedHeaders(t *testing.T) {
	own := http.Header{"Authorization": {"Bearer a"}, "Impersonate-User": {"x"}, "Impersonate-Group": {"g", "h"}}
	for _, tc := range []struct {
		name           string
		switched       bool
		request, wants http.Header
	}{
		{"before a switch", false, own, own},
		{"after a switch", true, own, http.Header{}},
		{"after a switch, of the caller", true, http.Header{"Authorization": {"Bearer b"}, "Impersonate-Group": {"g"}},
			http.Header{"Authorization": {"Bearer b"}, "Impersonate-Group": {"g"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var got http.Header
			record := roundTripper(func(req *http.Request) (*http.Response, error) {
				got = req.Header
				return echo(req)
			})
			transport := NewTransport(&fakeBackend{server: "https://a", transport: record})
			client := transport.Wrapper(transport.Backend(), own, false)(http.DefaultTransport)
			if tc.switched {
				g.Expect(transport.Switch(NewTransport(&fakeBackend{server: "https://b", transport: record}))).To(Succeed())
			}
			req := newRequest(t, http.MethodGet, "https://a/", nil)
			req.Header = tc.request.Clone()
			send(g, client, req)
			g.Expect(got).To(Equal(tc.wants))
			g.Expect(req.Header).To(Equal(tc.request), "the caller's request does not change")
		})
	}
}

func TestPrintedClientHasNoSecret(t *testing.T) {
	transport := NewTransport(&fakeBackend{server: "https://a"})
	client := transport.Wrapper(transport.Backend(), http.Header{"Authorization": {"Bearer s3cret"}}, false)(http.DefaultTransport)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		NewWithT(t).Expect(fmt.Sprintf(format, client)).NotTo(ContainSubstring("s3cret"))
	}
}

func TestRequestAllocations(t *testing.T) {
	a := newTestAuthenticator(&fakeSource{life: time.Hour})
	authorization := a.token(t)
	response := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	var sent *http.Request
	transport := NewTransport(&fakeBackend{server: "https://c1", auth: a, transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		sent = req
		return response, nil
	})})
	client := clientOf(transport)
	req := newRequest(t, http.MethodGet, "https://c1/api", nil)
	req.Header.Set("User-Agent", "me")

	// The least that a RoundTripper needs, which must not change the request.
	least := testing.AllocsPerRun(100, func() {
		sent = req.WithContext(t.Context())
		sent.Header = req.Header.Clone()
		sent.Header["Authorization"] = []string{authorization}
	})
	sent = nil
	needed := testing.AllocsPerRun(100, func() {
		response, err := client.RoundTrip(req)
		if err != nil {
			t.Error(err)
		}
		_ = response.Body.Close()
	})
	if needed > least {
		t.Errorf("a request takes %v allocations more than without a credential, and %v would do", needed, least)
	}
	if sent.Header.Get("Authorization") != authorization {
		t.Error("the credential is missing")
	}
}
