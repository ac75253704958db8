// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
)

func TestSharedTransport(t *testing.T) {
	g := NewWithT(t)
	var sent context.Context
	conns := NewConnections(nil)
	conns.Share(roundTripper(func(req *http.Request) (*http.Response, error) {
		sent = req.Context()
		return echo(req)
	}))
	g.Expect(send(g, conns.Transport, newRequest(t, http.MethodGet, "https://c1/", nil))).To(Equal("https://c1/"))
	g.Expect(sent.Err()).To(MatchError(context.Canceled), "the response was read")

	resp, err := conns.Transport.RoundTrip(newRequest(t, http.MethodGet, "https://c1/", nil))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sent.Err()).NotTo(HaveOccurred())
	conns.end()
	g.Eventually(sent.Err).Should(MatchError(context.Canceled))
	g.Expect(resp.Body.Close()).To(Succeed())
	g.Expect(fail(conns.Transport, newRequest(t, http.MethodGet, "https://c1/", nil))).To(MatchError(errEnded))
}

func TestSharedTransportUpgrade(t *testing.T) {
	g := NewWithT(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, conn)
	}))
	defer s.Close()
	conns := NewConnections(nil)
	conns.Share(s.Client().Transport)
	req := newRequest(t, http.MethodGet, s.URL, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := conns.Transport.RoundTrip(req)
	g.Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	_, err = fmt.Fprint(resp.Body.(io.Writer), "hello")
	g.Expect(err).NotTo(HaveOccurred())
	got := make([]byte, 5)
	_, err = io.ReadFull(resp.Body, got)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).To(Equal("hello"))
	conns.end()
	_, err = resp.Body.Read(got)
	g.Expect(err).To(MatchError(net.ErrClosed))
}
