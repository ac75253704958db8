// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"io"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRequest(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// clientOf returns a client of a Transport, or the http.RoundTripper itself.
func clientOf(transport any) http.RoundTripper {
	if t, ok := transport.(*Transport); ok {
		return t.Wrapper(t.Backend(), nil, false)(http.DefaultTransport)
	}
	return transport.(http.RoundTripper)
}

// fail returns the error of a request.
func fail(transport any, req *http.Request) error {
	resp, err := clientOf(transport).RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// send returns the body of the response.
func send(g *WithT, transport any, req *http.Request) string {
	resp, err := clientOf(transport).RoundTrip(req)
	g.Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(resp.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resp.Body.Close()).To(Succeed())
	return string(body)
}
