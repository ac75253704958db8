// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

func TestWhatAnAnswerTellsOfACluster(t *testing.T) {
	const unclear = "answers"
	for _, tc := range []struct {
		name string
		code int
		body string
		uid  string
		err  string // "" if it answers as a cluster does
		busy bool
	}{
		{name: "the namespace: its UID", code: 200, body: `{"kind":"Namespace","apiVersion":"v1","metadata":{"uid":"u"}}`, uid: "u"},
		{name: "it forbids the question: a cluster", code: 403, body: `{"kind":"Status","apiVersion":"v1","code":403}`},
		{name: "it has no such namespace: a cluster", code: 404, body: `{"kind":"Status","apiVersion":"v1","code":404}`},
		{name: "a page: no cluster", code: 200, body: "<html>", err: "does not answer as a Kubernetes API server"},
		{name: "something else in JSON: no cluster", code: 200, body: `{}`, err: "does not answer as a Kubernetes API server"},
		{name: "a proxy that forbids: no cluster", code: 403, body: "<html>", err: unclear},
		{name: "a proxy that finds nothing: no cluster", code: 404, body: "404 page not found", err: unclear},
		{name: "a proxy that leads to a login: no cluster", code: 302, err: unclear},
		{name: "credentials not accepted", code: 401, err: "does not accept the credentials"},
		{name: "too many requests: it lives", code: 429, err: "429", busy: true},
		{name: "not available", code: 503, err: "503 Service Unavailable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			server, err := newTarget("https://a", roundTripper(func(req *http.Request) (*http.Response, error) {
				g.Expect(req.URL.String()).To(Equal("https://a/api/v1/namespaces/kube-system"))
				return &http.Response{StatusCode: tc.code, Body: io.NopCloser(strings.NewReader(tc.body))}, nil
			}))
			g.Expect(err).NotTo(HaveOccurred())
			id, err := server.identify(t.Context(), &inventory.Profile{})
			g.Expect(isBusy(err)).To(Equal(tc.busy))
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
				reason := UnexpectedAnswer
				if tc.code == http.StatusUnauthorized {
					reason = Unauthorized
				}
				g.Expect(whyNoAnswer(err)).To(Equal(reason))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(id.uid).To(Equal(tc.uid))
		})
	}
}

func TestAClusterForWhichThereIsNoCredentialIsNotSaidNotToAnswer(t *testing.T) {
	g := NewWithT(t)
	for _, tc := range []struct {
		err    error
		text   string
		reason Reason
	}{
		{&credentials.Error{Provider: "p", Err: credentials.ErrTimeout}, `profile /: provider "p": plugin timed out`, ResolveFailed},
		{io.ErrUnexpectedEOF, "https://a does not answer: unexpected EOF", Unreachable},
	} {
		server, err := newTarget("https://a", roundTripper(func(*http.Request) (*http.Response, error) { return nil, tc.err }))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = server.identify(t.Context(), &inventory.Profile{})
		g.Expect(err).To(MatchError(tc.text))
		g.Expect(err).To(MatchError(tc.err))
		g.Expect(whyNoAnswer(err)).To(Equal(tc.reason))
	}
}

func TestWhichIdentitiesAreOfOneCluster(t *testing.T) {
	for _, tc := range []struct {
		name string
		a, b identity
		same bool
	}{
		{"the same UID", identity{uid: "u"}, identity{uid: "u"}, true},
		{"the same UID, whatever the profiles say", identity{"u", "a"}, identity{"u", "b"}, true},
		{"another UID, whatever the profiles say", identity{"u", "a"}, identity{"v", "a"}, false},
		{"the same ClusterID where a UID cannot be read", identity{"u", "a"}, identity{"", "a"}, true},
		{"another ClusterID", identity{"", "a"}, identity{"", "b"}, false},
		{"nothing known", identity{}, identity{}, false},
		{"nothing known of one", identity{"u", ""}, identity{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tc.a.same(tc.b)).To(Equal(tc.same))
			g.Expect(tc.b.same(tc.a)).To(Equal(tc.same))
		})
	}
}

func TestServersAreShownWithoutTheirUser(t *testing.T) {
	for server, want := range map[string]string{
		"https://eu.example":                  "https://eu.example",
		"https://eu.example/clusters/a@b":     "https://eu.example/clusters/a@b",
		"https://me:s3cret@eu.example:6443/x": "https://eu.example:6443/x",
		"https://me@eu.example":               "https://eu.example",
		"https://me:s3%cret@eu.example":       "eu.example", // is no URL
		"me:s3cret@eu.example":                "eu.example",
		"in process":                          "in process",
	} {
		if got := shown(server); got != want {
			t.Errorf("%q is shown as %q, want %q", server, got, want)
		}
	}
	refuses := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") })
	target, err := newTarget("https://me:s3cret@eu.example", refuses)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.identify(t.Context(), &inventory.Profile{}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error is %v", err)
	}
	if _, err := newTarget("https://me:s3%cret@eu.example", refuses); err == nil || strings.Contains(err.Error(), "cret") {
		t.Errorf("the error is %v", err)
	}
}
