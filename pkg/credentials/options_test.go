// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	options, err := Options{}.complete()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(options.Timeout).To(Equal(30 * time.Second))
	g.Expect(options.MaxConcurrentRuns).To(Equal(8))
	g.Expect(options.RefreshInterval).To(Equal(5 * time.Minute))
	g.Expect(options.Logger.IsZero()).To(BeFalse())
	g.Expect(maxAnswer).To(Equal(1 << 20))
	g.Expect(minBackoff).To(Equal(time.Second))
	g.Expect(maxBackoff).To(Equal(time.Minute))

	g.Expect(cap(newRunner(&options).slots)).To(Equal(8))
}

func TestARequestCostsItsHeaderAlone(t *testing.T) {
	a := newTestAuthenticator(&source{life: time.Hour})
	authorization := a.token(t)
	response := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
	var sent *http.Request
	transport := &authRoundTripper{
		link: &managed{endpoint: &endpoint{host: "c1", hostPort: "c1:443"}, auth: a, wire: &wire{}},
		base: sending(func(request *http.Request) (*http.Response, error) {
			sent = request
			return response, nil
		}),
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://c1/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "me")

	// The least that a RoundTripper needs: it must not change what it is given.
	least := testing.AllocsPerRun(100, func() {
		sent = request.WithContext(t.Context())
		sent.Header = request.Header.Clone()
		sent.Header["Authorization"] = []string{authorization}
	})
	sent = nil
	needed := testing.AllocsPerRun(100, func() {
		response, err := transport.RoundTrip(request)
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

type sending func(*http.Request) (*http.Response, error)

func (f sending) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
