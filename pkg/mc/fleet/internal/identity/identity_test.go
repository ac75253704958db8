// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func parse(t *testing.T, server string) *url.URL {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestProbeResponses(t *testing.T) {
	for _, tc := range []struct {
		name         string
		code         int
		body         string
		uid          string
		err          string // "" for the response of a cluster
		busy         bool
		unauthorized bool
		header       string // Retry-After
		retryAfter   time.Duration
	}{
		{name: "the namespace", code: 200, body: `{"kind":"Namespace","apiVersion":"v1","metadata":{"uid":"u"}}`, uid: "u"},
		{name: "forbidden by an API server", code: 403, body: `{"kind":"Status","apiVersion":"v1","code":403}`},
		{name: "no such namespace", code: 404, body: `{"kind":"Status","apiVersion":"v1","code":404}`},
		{name: "a page", code: 200, body: "<html>", err: "is not from a Kubernetes API server"},
		{name: "other JSON", code: 200, body: `{}`, err: "is not from a Kubernetes API server"},
		{name: "forbidden by a proxy", code: 403, body: "<html>", err: "https://a responded with 403 Forbidden"},
		{name: "not found by a proxy", code: 404, body: "404 page not found", err: "https://a responded with 404"},
		{name: "a redirect to a login", code: 302, err: "https://a responded with 302"},
		{name: "rejected credentials", code: 401, err: "https://a rejected the credentials", unauthorized: true},
		{name: "too many requests", code: 429, err: "429", busy: true},
		{name: "too many requests for a while", code: 429, err: "429", busy: true, header: "3", retryAfter: 3 * time.Second},
		{name: "unavailable for a while", code: 503, err: "503", header: "120", retryAfter: 2 * time.Minute},
		{name: "a malformed delay", code: 503, err: "503", header: "soon"},
		{name: "a negative delay", code: 503, err: "503", header: "-1"},
		{name: "an endless delay", code: 503, err: "503", header: "9999999999999"},
		{name: "unavailable", code: 503, err: "503 Service Unavailable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			uid, err := identity.Probe(t.Context(), roundTripper(func(req *http.Request) (*http.Response, error) {
				g.Expect(req.URL.String()).To(Equal("https://a/api/v1/namespaces/kube-system"))
				return &http.Response{StatusCode: tc.code, Header: http.Header{"Retry-After": {tc.header}}, Body: io.NopCloser(strings.NewReader(tc.body))}, nil
			}), parse(t, "https://a"))
			g.Expect(identity.IsBusy(err)).To(Equal(tc.busy))
			g.Expect(identity.IsUnauthorized(err)).To(Equal(tc.unauthorized))
			if tc.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(uid).To(Equal(tc.uid))
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
			g.Expect(identity.IsUnexpectedResponse(err)).To(Equal(!tc.unauthorized))
			g.Expect(identity.RetryAfter(err)).To(Equal(tc.retryAfter))
		})
	}
}

func TestProbeConnectionErrors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		server string
		err    error
		text   string
	}{
		{"no credential", "https://a", &credentials.Error{Provider: "p", Err: credentials.ErrTimeout}, `profile /: provider "p": plugin timed out`},
		{"no response", "https://a", io.ErrUnexpectedEOF, "no response from https://a: unexpected EOF"},
		{"an invalid certificate", "https://a", &tls.CertificateVerificationError{Err: errors.New("bad")}, "cannot verify the certificate of https://a: tls: failed to verify certificate: bad"},
		{"a URL with a password", "https://me:s3cret@a", io.ErrUnexpectedEOF, "no response from https://a: unexpected EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := identity.Probe(t.Context(), roundTripper(func(*http.Request) (*http.Response, error) { return nil, tc.err }), parse(t, tc.server))
			g.Expect(err).To(MatchError(tc.text))
			g.Expect(err).To(MatchError(tc.err))
			g.Expect(identity.IsUnexpectedResponse(err)).To(BeFalse())
		})
	}
}

func TestMatches(t *testing.T) {
	type id = identity.Identity
	for _, tc := range []struct {
		name      string
		a, b      id
		matches   bool
		conflicts bool
	}{
		{"equal UIDs", id{UID: "u"}, id{UID: "u"}, true, false},
		{"equal UIDs, other ClusterIDs", id{"u", "a"}, id{"u", "b"}, true, false},
		{"other UIDs, equal ClusterIDs", id{"u", "a"}, id{"v", "a"}, false, true},
		{"equal ClusterIDs, one UID unknown", id{"u", "a"}, id{"", "a"}, true, false},
		{"other ClusterIDs", id{"", "a"}, id{"", "b"}, false, true},
		{"nothing known", id{}, id{}, false, false},
		{"nothing known of one", id{"u", ""}, id{}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			for _, pair := range [][2]id{{tc.a, tc.b}, {tc.b, tc.a}} {
				g.Expect(pair[0].Matches(pair[1])).To(Equal(tc.matches))
				g.Expect(pair[0].Conflicts(pair[1])).To(Equal(tc.conflicts))
			}
		})
	}
}

func TestRedact(t *testing.T) {
	for server, want := range map[string]string{
		"https://eu.example":                  "https://eu.example",
		"https://eu.example/clusters/a@b":     "https://eu.example/clusters/a@b",
		"https://me:s3cret@eu.example:6443/x": "https://eu.example:6443/x",
		"https://me@eu.example":               "https://eu.example",
		"https://me:s3%cret@eu.example":       "eu.example", // not a URL
		"me:s3cret@eu.example":                "eu.example",
		"in process":                          "in process",
	} {
		if got := identity.Redact(server); got != want {
			t.Errorf("Redact(%q) = %q, want %q", server, got, want)
		}
	}
}
