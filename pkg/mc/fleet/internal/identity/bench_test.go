// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
)

// kubeSystem is what an API server responds to a probe.
const kubeSystem = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"9f4e0a6c-1a52-4a5c-9d0f-5a3f5b8a3f10","resourceVersion":"4","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"kubernetes.io/metadata.name":"kube-system"},"managedFields":[{"manager":"kube-apiserver","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}}}]},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}
`

// BenchmarkProbe measures one probe: without a network, and over a connection to a
// server in this process, whose share is included.
func BenchmarkProbe(b *testing.B) {
	b.Run("no network", func(b *testing.B) {
		transport := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(kubeSystem))}, nil
		})
		benchmarkProbe(b, transport, "https://cluster.example.com:6443")
	})
	b.Run("HTTP/2 with TLS", func(b *testing.B) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, kubeSystem)
		}))
		server.EnableHTTP2 = true
		server.StartTLS()
		defer server.Close()
		benchmarkProbe(b, server.Client().Transport, server.URL)
	})
}

func benchmarkProbe(b *testing.B, transport http.RoundTripper, server string) {
	u, err := url.Parse(server)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := identity.Probe(b.Context(), transport, u); err != nil {
			b.Fatal(err)
		}
	}
}
