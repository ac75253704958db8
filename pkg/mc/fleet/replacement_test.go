// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// deafDialer opens connections whose packets can be dropped.
type deafDialer struct {
	mu     sync.Mutex // guards opened
	opened []*deafConn
}

func (d *deafDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &deafConn{Conn: conn, closed: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = append(d.opened, c)
	return c, nil
}

// drop drops all packets of the connections that are open.
func (d *deafDialer) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.opened {
		c.deaf.Store(true)
	}
}

// deafConn is a connection whose other end can disappear.
type deafConn struct {
	net.Conn
	deaf   atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.deaf.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *deafConn) Write(p []byte) (int, error) {
	if c.deaf.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *deafConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func TestDeadConnectionIsReplaced(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	dialer := &deafDialer{}
	config := c.Config()
	config.Dial = dialer.dial
	env := start(t, nil, func(o *fleet.Options) {
		o.Connection.Probe.Interval, o.Connection.Probe.Timeout = 100*time.Millisecond, 4*time.Second
	})
	env.credentials.set(config.Host, config)
	env.source.put(profile("eu", config.Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster
	g.Expect(names(t, g, cl)).To(BeEmpty()) // starts a watch
	before := c.Requests("get", "namespaces")
	g.Eventually(func() int { return c.Requests("get", "namespaces") }).Should(BeNumerically(">", before))

	dialer.drop()
	g.Expect(c.Create(configMap("later"))).To(Succeed())
	g.Eventually(func() []string { return names(t, g, cl) }, "25s").Should(ConsistOf("later"), "long before HTTP/2 notices")
	g.Expect(env.status("fleet/eu").State).To(Equal(fleet.Ready))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
	g.Eventually(c.Connections).Should(Equal(1))
}

func TestHangingClusterKeepsConnections(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, []*mctest.Cluster{c}, quickProbes)
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster
	g.Expect(names(t, g, cl)).To(BeEmpty())
	g.Eventually(func() int { return c.OpenWatches("configmaps") }).Should(Equal(1))
	watches := c.Requests("watch", "configmaps")

	c.Fault(mctest.Hang)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
	c.Clear()
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(c.Requests("watch", "configmaps")).To(Equal(watches), "its watch was not cut")
	g.Eventually(c.Connections).Should(Equal(1))
}
