// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// echo answers with the URL and body that it gets.
var echo = roundTripper(func(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		all, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body = " " + string(all)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(req.URL.String() + body))}, nil
})

func TestRequestsGoToTheCurrentAddress(t *testing.T) {
	for _, tc := range []struct {
		name            string
		base, now       string
		request, expect string
	}{
		{"as they are, at first", "https://a:1", "https://a:1", "https://a:1/api?x=y", "https://a:1/api?x=y"},
		{"to another host", "https://a:1", "https://b:2", "https://a:1/api?x=y", "https://b:2/api?x=y"},
		{"with a trailing slash", "https://a:1/", "https://b:2/", "https://a:1/api", "https://b:2/api"},
		{"below a path", "https://a", "https://b/clusters/7", "https://a/api", "https://b/clusters/7/api"},
		{"out of a path", "https://a/clusters/7", "https://b", "https://a/clusters/7/api", "https://b/api"},
		{"from path to path", "https://a/x", "https://b/y", "https://a/x/api", "https://b/y/api"},
		{"with escapes kept", "https://a/x", "https://b/y", "https://a/x/api/a%2Fb", "https://b/y/api/a%2Fb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			first, err := newTarget(tc.base, echo)
			g.Expect(err).NotTo(HaveOccurred())
			transport := newSwapTransport(first, clock.RealClock{})
			if tc.now != tc.base {
				next, err := newTarget(tc.now, echo)
				g.Expect(err).NotTo(HaveOccurred())
				transport.swap(next)
			}
			g.Expect(get(g, transport, tc.request)).To(Equal(tc.expect))
		})
	}
}

func TestARequestThatMeetsTheExchange(t *testing.T) {
	released := fmt.Errorf("sending: %w", credentials.ErrReleased)
	dropped := errors.New("use of closed network connection")
	for _, tc := range []struct {
		name   string
		method string
		body   io.Reader
		sent   bool // the first target has had it
		err    error
		want   string // "" means that it fails with the error
	}{
		{"goes to the next target if it was not sent", http.MethodPost, nil, false, released, "https://b/"},
		{"and takes its body along", http.MethodPost, strings.NewReader("hello"), false, released, "https://b/ hello"},
		{"but fails if the body cannot be had again", http.MethodPost, io.NopCloser(strings.NewReader("hello")), false, released, ""},
		{"is made again if it only reads", http.MethodGet, nil, true, dropped, "https://b/"},
		{"and has no method, which means GET", "", nil, true, dropped, "https://b/"},
		{"is not made again if it creates", http.MethodPost, strings.NewReader("hello"), true, dropped, ""},
		{"nor if it changes", http.MethodPatch, strings.NewReader("hello"), true, dropped, ""},
		{"nor if it deletes", http.MethodDelete, nil, true, dropped, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			seen := 0
			next, err := newTarget("https://b", roundTripper(func(req *http.Request) (*http.Response, error) {
				seen++
				return echo(req)
			}))
			g.Expect(err).NotTo(HaveOccurred())
			var transport *swapTransport
			first, err := newTarget("https://a", roundTripper(func(req *http.Request) (*http.Response, error) {
				if req.Body != nil {
					if tc.sent {
						_, _ = io.Copy(io.Discard, req.Body)
					}
					_ = req.Body.Close()
				}
				transport.swap(next)
				return nil, tc.err
			}))
			g.Expect(err).NotTo(HaveOccurred())
			transport = newSwapTransport(first, clock.RealClock{})
			req, err := http.NewRequest(tc.method, "https://a/", tc.body)
			g.Expect(err).NotTo(HaveOccurred())
			req.Method = tc.method
			if tc.want == "" {
				g.Expect(fail(transport, req)).To(MatchError(tc.err))
				g.Expect(seen).To(BeZero())
				return
			}
			g.Expect(send(g, transport, req)).To(Equal(tc.want))
		})
	}
}

func TestARequestThatItsCallerHasGivenUpIsNotMadeAgain(t *testing.T) {
	g := NewWithT(t)
	next, err := newTarget("https://b", echo)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	var transport *swapTransport
	first, err := newTarget("https://a", roundTripper(func(*http.Request) (*http.Response, error) {
		transport.swap(next)
		cancel()
		return nil, context.Canceled
	}))
	g.Expect(err).NotTo(HaveOccurred())
	transport = newSwapTransport(first, clock.RealClock{})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://a/", nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fail(transport, req)).To(MatchError(context.Canceled))
}

func TestAfterTheEndRequestsFail(t *testing.T) {
	g := NewWithT(t)
	first, err := newTarget("https://a", echo)
	g.Expect(err).NotTo(HaveOccurred())
	transport := newSwapTransport(first, clock.RealClock{})
	transport.close()
	req, err := http.NewRequest(http.MethodPost, "https://a/", strings.NewReader("hello"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(fail(transport, req)).To(MatchError(errLeft))
}

func TestSignsOfLifeFollowTheMonotonicClock(t *testing.T) {
	g := NewWithT(t)
	first, err := newTarget("https://a", echo)
	g.Expect(err).NotTo(HaveOccurred())
	transport := newSwapTransport(first, clock.RealClock{})
	before := time.Now()
	get(g, transport, "https://a/")
	sign := transport.lastSign()
	g.Expect(sign.String()).To(ContainSubstring(" m="), "a clock that is set is no sign of life")
	g.Expect(sign.After(before)).To(BeTrue())
}

func TestATargetNeedsAHost(t *testing.T) {
	for _, server := range []string{"", "a:1", "/path", "https://", ":"} {
		_, err := newTarget(server, echo)
		NewWithT(t).Expect(err).To(HaveOccurred(), server)
	}
}

func get(g *WithT, transport http.RoundTripper, url string) string {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	g.Expect(err).NotTo(HaveOccurred())
	return send(g, transport, req)
}

// fail returns the error of a request.
func fail(transport http.RoundTripper, req *http.Request) error {
	resp, err := transport.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

func send(g *WithT, transport http.RoundTripper, req *http.Request) string {
	resp, err := transport.RoundTrip(req)
	g.Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(resp.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(resp.Body.Close()).To(Succeed())
	return string(body)
}
