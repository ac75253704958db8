// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// echo responds with the URL and the body of the request.
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

// fakeBackend sends requests to a function.
type fakeBackend struct {
	server    string
	transport http.RoundTripper
	tls       string
	fault     error // of Connect
	auth      *Authenticator
	acquired  bool
	released  int
}

func (b *fakeBackend) Server() (*url.URL, error) { return url.Parse(b.server) }

func (b *fakeBackend) Connect() (*Connections, error) {
	conns := NewConnections(nil)
	conns.Transport = b.transport
	return conns, b.fault
}

func (b *fakeBackend) Acquire(*Transport) (*Authenticator, error) {
	b.acquired = true
	return b.auth, nil
}

func (b *fakeBackend) Release() { b.released++ }

func (b *fakeBackend) Wrap(base http.RoundTripper) (http.RoundTripper, error) { return base, nil }

func (b *fakeBackend) TLS() string { return b.tls }

func (b *fakeBackend) ConfigureTLS(*tls.Config) error { return nil }

func (b *fakeBackend) Proxy() string { return "" }

func (b *fakeBackend) WrapError(err error) error { return fmt.Errorf("%s: %w", b.server, err) }

func TestSwitchTranslatesURLs(t *testing.T) {
	for _, tc := range []struct {
		name            string
		servers         []string // one after the other
		request, expect string
	}{
		{"as they are, at first", []string{"https://a:1"}, "https://a:1/api?x=y", "https://a:1/api?x=y"},
		{"to another host", []string{"https://a:1", "https://b:2"}, "https://a:1/api?x=y", "https://b:2/api?x=y"},
		{"with a trailing slash", []string{"https://a:1/", "https://b:2/"}, "https://a:1/api", "https://b:2/api"},
		{"below a path", []string{"https://a", "https://b/clusters/7"}, "https://a/api", "https://b/clusters/7/api"},
		{"out of a path", []string{"https://a/clusters/7", "https://b"}, "https://a/clusters/7/api", "https://b/api"},
		{"from path to path", []string{"https://a/x", "https://b/y"}, "https://a/x/api", "https://b/y/api"},
		{"with escapes", []string{"https://a/x", "https://b/y"}, "https://a/x/api/a%2Fb", "https://b/y/api/a%2Fb"},
		{"with escapes in both paths", []string{"https://a/x%2Fz", "https://b/y%2Fz"}, "https://a/x%2Fz/api", "https://b/y%2Fz/api"},
		{"of the current server", []string{"https://a", "https://b/y"}, "https://b/y/api", "https://b/y/api"},
		{"of each server before", []string{"https://a", "https://b", "https://c"}, "https://a/api", "https://c/api"},
		{"of each server before", []string{"https://a", "https://b", "https://c"}, "https://b/api", "https://c/api"},
		{"back to the first server", []string{"https://a", "https://b", "https://a"}, "https://b/api", "https://a/api"},
		{"with a default port", []string{"https://a", "https://b"}, "https://a:443/api", "https://b/api"},
		{"in capitals", []string{"https://a", "https://b"}, "https://A/api", "https://b/api"},
		{"on the same host", []string{"https://a/x", "https://a/y"}, "https://a/x/api", "https://a/y/api"},
		{"on the same host, of the current server", []string{"https://a/x", "https://a/y"}, "https://a/y/api", "https://a/y/api"},
		{"by the longest path", []string{"https://a/x", "https://a/x/y", "https://b"}, "https://a/x/y/api", "https://b/api"},
		{"by whole parts of the path", []string{"https://a/clusters/1", "https://b/clusters/2"}, "https://a/clusters/12", "https://b/clusters/12"},
		{"of a websocket", []string{"https://a", "https://b/x"}, "wss://a/api", "wss://b/x/api"},
		{"from http to https", []string{"http://a", "https://b"}, "http://a/api", "https://b/api"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			transport := NewTransport(&fakeBackend{server: tc.servers[0], transport: echo})
			for _, server := range tc.servers[1:] {
				g.Expect(transport.Switch(NewTransport(&fakeBackend{server: server, transport: echo}))).To(Succeed())
			}
			g.Expect(send(g, transport, newRequest(t, http.MethodGet, tc.request, nil))).To(Equal(tc.expect))
		})
	}
}

func TestSwitchManyTimes(t *testing.T) {
	g := NewWithT(t)
	transport := NewTransport(&fakeBackend{server: "https://first", transport: echo})
	for i := range 1000 {
		g.Expect(transport.Switch(NewTransport(&fakeBackend{server: fmt.Sprintf("https://h%d/x", i), transport: echo}))).To(Succeed())
	}
	g.Expect(transport.target().servers.all).To(HaveLen(maxServers))
	for _, known := range []string{"https://h999/x", "https://h998/x", "https://h936/x"} {
		g.Expect(send(g, transport, newRequest(t, http.MethodGet, known, nil))).To(Equal("https://h999/x"))
	}
	for _, dropped := range []string{"https://h935/x", "https://first", "https://h999/y"} {
		g.Expect(fail(transport, newRequest(t, http.MethodGet, dropped, nil))).To(And(
			MatchError(errdefs.ErrDenied), MatchError(ContainSubstring("make a new client for h999:443/x"))))
	}

	// Back and forth between two servers drops none.
	for i := range 1000 {
		g.Expect(transport.Switch(NewTransport(&fakeBackend{server: fmt.Sprintf("https://h%d/x", 990+i%2), transport: echo}))).To(Succeed())
	}
	g.Expect(send(g, transport, newRequest(t, http.MethodGet, "https://h936/x", nil))).To(Equal("https://h991/x"))

	// The clients of both keep their latest servers.
	next := NewTransport(&fakeBackend{server: "https://n", transport: echo})
	for i := range 1000 {
		g.Expect(next.Switch(NewTransport(&fakeBackend{server: fmt.Sprintf("https://n%d", i), transport: echo}))).To(Succeed())
	}
	g.Expect(transport.Switch(next)).To(Succeed())
	for _, known := range []string{"https://h991/x", "https://h999/x", "https://n999", "https://n980"} {
		g.Expect(send(g, transport, newRequest(t, http.MethodGet, known, nil))).To(Equal("https://n999"))
	}
}

func TestSwitchChain(t *testing.T) {
	g := NewWithT(t)
	first := NewTransport(&fakeBackend{server: "https://c", transport: echo})
	backend := first.Backend()
	client := clientOf(first)
	chain := []*Transport{first}
	for range 1000 {
		next := NewTransport(&fakeBackend{server: "https://b", transport: echo})
		g.Expect(next.Switch(chain[len(chain)-1])).To(Succeed())
		chain = append(chain, next)
	}
	last := chain[len(chain)-1]
	for range 10 {
		g.Expect(send(g, client, newRequest(t, http.MethodGet, "https://c/", nil))).To(Equal("https://c/"))
	}
	g.Expect(first.current.Load().owner).To(BeIdenticalTo(last), "the chain was shortened")
	first.end(backend, errdefs.ErrClosed)
	g.Expect(fail(client, newRequest(t, http.MethodGet, "https://c/", nil))).To(MatchError(errdefs.ErrClosed))
}

func TestSwitchAmongMany(t *testing.T) {
	for range 50 {
		var transports []*Transport
		for range 8 {
			transports = append(transports, NewTransport(&fakeBackend{server: "https://c", transport: echo}))
		}
		var group sync.WaitGroup
		for i, transport := range transports {
			client := clientOf(transport)
			group.Go(func() {
				for j := range transports {
					_ = transport.Switch(transports[(i+j)%len(transports)]) // it may have been taken over
					resp, err := client.RoundTrip(newRequest(t, http.MethodGet, "https://c/", nil))
					if err != nil {
						t.Error(err)
						continue
					}
					_ = resp.Body.Close()
				}
			})
		}
		group.Wait()
		live := 0
		for _, transport := range transports {
			if transport.current.Load().owner == nil {
				live++
			}
		}
		if live != 1 {
			t.Errorf("%d transports have not been taken over, want 1", live)
		}
	}
}

func TestOtherHostsAreDenied(t *testing.T) {
	for _, request := range []string{"https://evil/api", "http://b/api", "https://b:6443/api", "ftp://b/"} {
		g := NewWithT(t)
		transport := NewTransport(&fakeBackend{server: "https://a", transport: echo})
		g.Expect(transport.Switch(NewTransport(&fakeBackend{server: "https://b", transport: echo}))).To(Succeed())
		g.Expect(fail(transport, newRequest(t, http.MethodGet, request, nil))).To(MatchError(errdefs.ErrDenied), request)
	}
}

func TestRequestDuringSwitch(t *testing.T) {
	unsent := fmt.Errorf("dial: %w", errEnded)
	dropped := errors.New("use of closed network connection")
	for _, tc := range []struct {
		name   string
		method string
		body   io.Reader
		sent   bool // the first backend has received it
		err    error
		want   string // "" means that it fails with the error
	}{
		{"not sent", http.MethodPost, nil, false, unsent, "https://b/"},
		{"not sent, with a body", http.MethodPost, strings.NewReader("hello"), false, unsent, "https://b/ hello"},
		{"not sent, with a body that cannot be read again", http.MethodPost, io.NopCloser(strings.NewReader("hello")), false, unsent, ""},
		{"sent, and it only reads", http.MethodGet, nil, true, dropped, "https://b/"},
		{"sent, and has no method, which means GET", "", nil, true, dropped, "https://b/"},
		{"sent, and it creates", http.MethodPost, strings.NewReader("hello"), true, dropped, ""},
		{"sent, and it changes", http.MethodPatch, strings.NewReader("hello"), true, dropped, ""},
		{"sent, and it deletes", http.MethodDelete, nil, true, dropped, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			seen := 0
			next := NewTransport(&fakeBackend{server: "https://b", transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				seen++
				return echo(req)
			})})
			var transport *Transport
			transport = NewTransport(&fakeBackend{server: "https://a", transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				if req.Body != nil {
					if tc.sent {
						_, _ = io.Copy(io.Discard, req.Body)
					}
					_ = req.Body.Close()
				}
				g.Expect(transport.Switch(next)).To(Succeed())
				return nil, tc.err
			})})
			req := newRequest(t, tc.method, "https://a/", tc.body)
			req.Method = tc.method
			if tc.want == "" {
				g.Expect(fail(transport, req)).To(MatchError(tc.err))
				g.Expect(seen).To(BeZero())
				return
			}
			g.Expect(send(g, transport, req)).To(Equal(tc.want))
			g.Expect(seen).To(Equal(1))
		})
	}
}

func TestCanceledRequestIsNotRepeated(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	next := NewTransport(&fakeBackend{server: "https://b", transport: echo})
	var transport *Transport
	transport = NewTransport(&fakeBackend{server: "https://a", transport: roundTripper(func(*http.Request) (*http.Response, error) {
		g.Expect(transport.Switch(next)).To(Succeed())
		cancel()
		return nil, context.Canceled
	})})
	req := newRequest(t, http.MethodGet, "https://a/", nil).WithContext(ctx)
	g.Expect(fail(transport, req)).To(MatchError(context.Canceled))
}

func TestRefusalDuringSwitch(t *testing.T) {
	g := NewWithT(t)
	next := NewTransport(&fakeBackend{server: "https://b", transport: echo})
	var transport *Transport
	transport = NewTransport(&fakeBackend{server: "https://a", transport: roundTripper(func(*http.Request) (*http.Response, error) {
		g.Expect(transport.Switch(next)).To(Succeed())
		return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody}, nil
	})})
	req := newRequest(t, http.MethodPost, "https://a/", strings.NewReader("hello"))
	g.Expect(send(g, transport, req)).To(Equal("https://b/ hello"), "the next backend has another credential")
}

func TestRequestDuringRelease(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want error
	}{
		{"not sent", fmt.Errorf("dial: %w", errEnded), errdefs.ErrReleased},
		{"sent", io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var transport *Transport
			transport = NewTransport(&fakeBackend{server: "https://a", transport: roundTripper(func(*http.Request) (*http.Response, error) {
				transport.Release()
				return nil, tc.err
			})})
			g.Expect(fail(transport, newRequest(t, http.MethodGet, "https://a/", nil))).To(MatchError(tc.want))
			req := newRequest(t, http.MethodPost, "https://a/", strings.NewReader("hello"))
			g.Expect(fail(transport, req)).To(MatchError(errdefs.ErrReleased))
		})
	}
}

func TestSwitchOwnership(t *testing.T) {
	g := NewWithT(t)
	a, b, c := &fakeBackend{server: "https://a", transport: echo}, &fakeBackend{server: "https://b", transport: echo},
		&fakeBackend{server: "https://c", transport: echo}
	first, second, third := NewTransport(a), NewTransport(b), NewTransport(c)
	get := func(transport *Transport, url string) string {
		return send(g, transport, newRequest(t, http.MethodGet, url, nil))
	}
	g.Expect(first.Switch(second)).To(Succeed(), "no request was sent before")
	g.Expect(get(first, "https://a/")).To(Equal("https://b/"))
	g.Expect(get(second, "https://b/")).To(Equal("https://b/"))
	g.Expect(a.released).To(Equal(1))
	g.Expect(a.acquired).To(BeFalse())

	second.Release()
	g.Expect(b.released).To(BeZero(), "the first one has it")
	g.Expect(first.Switch(third)).To(Succeed())
	g.Expect(b.released).To(Equal(1))
	g.Expect(get(second, "https://b/")).To(Equal("https://c/"), "clients of the second one follow the first one")
	g.Expect(second.Backend()).To(BeIdenticalTo(c))

	first.Release()
	first.Release()
	g.Expect(c.released).To(Equal(1))
	g.Expect(fail(second, newRequest(t, http.MethodGet, "https://b/", nil))).To(MatchError(errdefs.ErrReleased))
}

func TestFailedSwitchChangesNothing(t *testing.T) {
	fault := errors.New("no such file")
	released := NewTransport(&fakeBackend{server: "https://c", transport: echo})
	released.Release()
	taken := NewTransport(&fakeBackend{server: "https://d", transport: echo})
	if err := NewTransport(&fakeBackend{server: "https://e", transport: echo}).Switch(taken); err != nil {
		t.Fatal(err)
	}
	backend := &fakeBackend{server: "https://a", transport: echo}
	transport := NewTransport(backend)
	for _, tc := range []struct {
		name string
		next *Transport
		want any
	}{
		{"to a released one", released, errdefs.ErrReleased},
		{"to one that was switched to", taken, ContainSubstring("taken over")},
		{"to itself", transport, ContainSubstring("itself")},
		{"to one that cannot connect", NewTransport(&fakeBackend{server: "https://b", fault: fault}), fault},
		{"to one without a server", NewTransport(&fakeBackend{server: ":"}), ContainSubstring("missing protocol scheme")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(transport.Switch(tc.next)).To(MatchError(tc.want))
			g.Expect(send(g, transport, newRequest(t, http.MethodGet, "https://a/", nil))).To(Equal("https://a/"))
			g.Expect(backend.released).To(BeZero())
		})
	}
	t.Run("from a released one", func(t *testing.T) {
		g := NewWithT(t)
		next := &fakeBackend{server: "https://b", transport: echo}
		g.Expect(released.Switch(NewTransport(next))).To(MatchError(errdefs.ErrReleased))
		g.Expect(next.released).To(BeZero())
	})
}

func TestOpenIsTriedAgain(t *testing.T) {
	g := NewWithT(t)
	backend := &fakeBackend{server: "https://a", transport: echo, fault: errors.New("no such file")}
	transport := NewTransport(backend)
	g.Expect(fail(transport, newRequest(t, http.MethodGet, "https://a/", nil))).To(MatchError(backend.fault))
	backend.fault = nil
	g.Expect(send(g, transport, newRequest(t, http.MethodGet, "https://a/", nil))).To(Equal("https://a/"))
}
