// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
)

// certificates is a plugin that gives client certificates.
type certificates struct {
	pool *Pool
	runs int
	life time.Duration // of those to come
}

func (c *certificates) source() *Source {
	return &Source{
		Obtain: func(context.Context) (*Credential, error) {
			c.runs++
			return &Credential{
				Certificate: &tls.Certificate{Certificate: [][]byte{{byte(c.runs)}}},
				Expiry:      time.Now().Add(c.life),
			}, nil
		},
		Started: func(*Authenticator) {}, Stopped: func(*Authenticator) {}, Log: logr.Discard(),
	}
}

// member is a backend that has the certificate. A response has no end, except one
// to /short.
type member struct {
	fakeBackend
	plugin *certificates
	conns  []*Connections
	refuse bool
}

func newMember(plugin *certificates) (*member, *Transport) {
	m := &member{fakeBackend: fakeBackend{server: "https://a"}, plugin: plugin}
	return m, NewTransport(m)
}

func (m *member) Connect() (*Connections, error) {
	conns := NewConnections(nil)
	conns.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
		resp := &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("short"))}
		switch {
		case m.refuse:
			resp.StatusCode = http.StatusUnauthorized
		case req.URL.Path != "/short":
			reader, _ := io.Pipe()
			resp.Body = reader
		}
		return resp, nil
	})
	m.conns = append(m.conns, conns)
	return conns, nil
}

func (m *member) Acquire(t *Transport) (*Authenticator, error) {
	return m.plugin.pool.Acquire("key", m, t, m.plugin.source)
}

func (m *member) Release() { m.plugin.pool.Release("key", m) }

// open returns the connections that are open, by their number.
func (m *member) open() []int {
	open := []int{}
	for i, conns := range m.conns {
		if conns.closing.Err() == nil {
			open = append(open, i)
		}
	}
	return open
}

// watch sends a request whose response has no end.
func watch(g *WithT, t *testing.T, transport *Transport) io.ReadCloser {
	resp, err := clientOf(transport).RoundTrip(newRequest(t, http.MethodGet, "https://a/watch", nil))
	g.Expect(err).NotTo(HaveOccurred())
	return resp.Body
}

// renew makes requests until the plugin has run again.
func (c *certificates) renew(g *WithT, t *testing.T, transport *Transport) {
	for runs := c.runs; c.runs == runs; time.Sleep(time.Minute) {
		send(g, transport, newRequest(t, http.MethodGet, "https://a/short", nil))
		synctest.Wait()
	}
}

func TestRenewalDrainsConnections(t *testing.T) {
	// Connections 0 are those from before the first run, without a certificate.
	for _, tc := range []struct {
		name string
		act  func(g *WithT, t *testing.T, plugin *certificates, m *member, transport *Transport, first io.Closer)
	}{
		{"the request ends", func(g *WithT, _ *testing.T, _ *certificates, m *member, _ *Transport, first io.Closer) {
			g.Expect(first.Close()).To(Succeed())
			g.Expect(first.Close()).To(Succeed())
			g.Expect(m.open()).To(Equal([]int{2}))
		}},
		{"the certificate ends", func(g *WithT, _ *testing.T, _ *certificates, m *member, _ *Transport, _ io.Closer) {
			time.Sleep(31 * time.Hour)
			g.Expect(m.open()).To(Equal([]int{2}))
		}},
		{"two renewals", func(g *WithT, t *testing.T, plugin *certificates, m *member, transport *Transport, first io.Closer) {
			second := watch(g, t, transport)
			plugin.renew(g, t, transport)
			g.Expect(m.open()).To(Equal([]int{1, 2, 3}))
			g.Expect(second.Close()).To(Succeed())
			g.Expect(m.open()).To(Equal([]int{1, 3}), "the request over the first ones goes on")
			g.Expect(first.Close()).To(Succeed())
			g.Expect(m.open()).To(Equal([]int{3}))
			plugin.renew(g, t, transport)
			g.Expect(m.open()).To(Equal([]int{4}), "idle connections are closed at once")
			g.Expect(transport.target().conns.replaced).To(HaveLen(1), "those that have ended are forgotten")
		}},
		{"release", func(g *WithT, _ *testing.T, _ *certificates, m *member, transport *Transport, _ io.Closer) {
			transport.Release()
			g.Expect(m.open()).To(BeEmpty())
		}},
		{"shutdown", func(g *WithT, _ *testing.T, plugin *certificates, m *member, _ *Transport, _ io.Closer) {
			plugin.pool.Close()
			g.Expect(m.open()).To(BeEmpty())
		}},
		{"switch", func(g *WithT, _ *testing.T, _ *certificates, m *member, transport *Transport, _ io.Closer) {
			g.Expect(transport.Switch(NewTransport(&fakeBackend{server: "https://b", transport: echo}))).To(Succeed())
			g.Expect(m.open()).To(BeEmpty())
		}},
		{"switch to this one", func(g *WithT, _ *testing.T, _ *certificates, m *member, transport *Transport, _ io.Closer) {
			other := NewTransport(&fakeBackend{server: "https://b", transport: echo})
			g.Expect(other.Switch(transport)).To(Succeed())
			g.Expect(m.open()).To(Equal([]int{1, 2}))
			other.Release()
			g.Expect(m.open()).To(BeEmpty())
		}},
		{"a refusal", func(g *WithT, t *testing.T, _ *certificates, m *member, transport *Transport, _ io.Closer) {
			m.refuse = true
			send(g, transport, newRequest(t, http.MethodGet, "https://a/short", nil))
			g.Expect(m.open()).To(Equal([]int{3}))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				plugin := &certificates{pool: NewPool(), life: 100 * time.Hour}
				defer plugin.pool.Close()
				m, transport := newMember(plugin)
				send(g, transport, newRequest(t, http.MethodGet, "https://a/short", nil))
				first := watch(g, t, transport)
				g.Expect(m.open()).To(Equal([]int{1}), "those with the certificate")

				plugin.life = time.Hour
				plugin.renew(g, t, transport)
				second := m.conns[2]
				send(g, transport, newRequest(t, http.MethodGet, "https://a/short", nil))
				g.Expect(m.open()).To(Equal([]int{1, 2}), "the request goes on")
				g.Expect(m.conns[1].begin()).To(BeFalse())
				g.Expect(transport.target().conns).To(BeIdenticalTo(second))
				tc.act(g, t, plugin, m, transport, first)
			})
		})
	}
}

func TestRefusalConcernsOneServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		plugin := &certificates{pool: NewPool(), life: 100 * time.Hour}
		defer plugin.pool.Close()
		hostile, hostileTransport := newMember(plugin)
		good, goodTransport := newMember(plugin)
		send(g, goodTransport, newRequest(t, http.MethodGet, "https://a/short", nil))
		body := watch(g, t, goodTransport)
		defer body.Close()
		hostile.refuse = true
		start := time.Now()
		for time.Since(start) < 10*time.Minute {
			send(g, hostileTransport, newRequest(t, http.MethodGet, "https://a/short", nil))
			time.Sleep(100 * time.Millisecond)
		}
		g.Expect(plugin.runs).To(BeNumerically("<=", 18))
		g.Expect(good.open()).To(HaveLen(2), "the watch goes on, and those for new requests")

		// Its own credential is refused now.
		good.refuse = true
		runs := plugin.runs
		send(g, goodTransport, newRequest(t, http.MethodGet, "https://a/short", nil))
		g.Expect(plugin.runs).To(Equal(runs+1), "there is a run at once")
		g.Expect(good.open()).To(HaveLen(1), "its watch is closed")
	})
}

func TestManyHostileServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		plugin := &certificates{pool: NewPool(), life: 100 * time.Hour}
		defer plugin.pool.Close()
		var hostile []*Transport
		for range 200 {
			m, transport := newMember(plugin)
			m.refuse = true
			hostile = append(hostile, transport)
		}
		for start := time.Now(); time.Since(start) < 10*time.Minute; time.Sleep(time.Second) {
			for _, transport := range hostile {
				send(g, transport, newRequest(t, http.MethodGet, "https://a/short", nil))
			}
		}
		g.Expect(plugin.runs).To(BeNumerically("<=", 60+firstOnesAtOnce+1))
	})
}
