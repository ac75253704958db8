// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/monitor"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func response(code int, body io.Reader) (*http.Response, error) {
	return &http.Response{StatusCode: code, Body: io.NopCloser(body)}, nil
}

func request(t *testing.T, target string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestAliveSince(t *testing.T) {
	for _, tc := range []struct {
		name     string
		target   string
		response func() (*http.Response, error)
		alive    bool
		suspect  bool
	}{
		{"a response", "/api", func() (*http.Response, error) { return response(200, strings.NewReader("")) }, true, false},
		{"an error of a proxy", "/api", func() (*http.Response, error) { return response(502, strings.NewReader("")) }, false, false},
		{"refused credentials", "/api", func() (*http.Response, error) { return response(401, strings.NewReader("")) }, false, true},
		{"a failed request", "/api", func() (*http.Response, error) { return nil, errors.New("refused") }, false, true},
		{"a watch that ended", "/api?watch=true", func() (*http.Response, error) { return response(200, strings.NewReader("event")) }, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				transport := monitor.New(roundTripper(func(*http.Request) (*http.Response, error) { return tc.response() }), clock.RealClock{})
				since := time.Now()
				g.Expect(transport.AliveSince(since)).To(BeFalse(), "nothing was received")
				time.Sleep(time.Second)
				if resp, err := transport.RoundTrip(request(t, "https://a"+tc.target)); err == nil {
					_, err = io.ReadAll(resp.Body)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(resp.Body.Close()).To(Succeed())
				}
				g.Expect(transport.AliveSince(since)).To(Equal(tc.alive))
				g.Expect(transport.Suspect()).To(Equal(tc.suspect))
				g.Expect(transport.Suspect()).To(BeFalse(), "since the last call")
				g.Expect(transport.AliveSince(time.Now().Add(time.Second))).To(BeFalse())
			})
		})
	}
}

func TestWatchEventsAreData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		reader, writer := io.Pipe()
		transport := monitor.New(roundTripper(func(*http.Request) (*http.Response, error) { return response(200, reader) }), clock.RealClock{})
		resp, err := transport.RoundTrip(request(t, "https://a/api?watch=1"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(transport.OpenWatches()).To(Equal(1))
		time.Sleep(time.Second)
		since := time.Now()
		time.Sleep(time.Second)
		g.Expect(transport.AliveSince(since)).To(BeFalse())
		go func() { _, _ = writer.Write([]byte("e")) }()
		_, err = resp.Body.Read(make([]byte, 1))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(transport.AliveSince(since)).To(BeTrue())
		g.Expect(resp.Body.Close()).To(Succeed())
		g.Expect(resp.Body.Close()).To(Succeed())
		g.Expect(transport.OpenWatches()).To(BeZero())
	})
}

func TestRefusedCredentialsBesideWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		code := 401
		transport := monitor.New(roundTripper(func(*http.Request) (*http.Response, error) { return response(code, strings.NewReader("")) }), clock.RealClock{})
		since := time.Now()
		get := func() {
			time.Sleep(time.Second)
			resp, err := transport.RoundTrip(request(t, "https://a/api"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(resp.Body.Close()).To(Succeed())
		}
		get()
		code = 200
		get()
		g.Expect(transport.AliveSince(since)).To(BeTrue())
		g.Expect(transport.Suspect()).To(BeTrue(), "a probe has to find out")
		get()
		g.Expect(transport.Suspect()).To(BeFalse())
	})
}

func TestClose(t *testing.T) {
	g := NewWithT(t)
	transport := monitor.New(roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("the request was sent")
		return nil, nil
	}), clock.RealClock{})
	transport.Close()
	resp, err := transport.RoundTrip(request(t, "https://a"))
	if err == nil {
		_ = resp.Body.Close()
	}
	g.Expect(err).To(MatchError(monitor.ErrDisengaged))
}
