// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// mctestConnector is a Connector to mctest clusters by server.
type mctestConnector struct {
	mu       sync.Mutex
	clusters map[string]*mctest.Cluster
	unprobed bool
	open     map[string]int // connections by server
	opened   int
	changed  []func()
}

func newMCTestConnector(clusters ...*mctest.Cluster) *mctestConnector {
	c := &mctestConnector{clusters: map[string]*mctest.Cluster{}, open: map[string]int{}}
	for _, one := range clusters {
		c.clusters[one.Config().Host] = one
	}
	return c
}

func (c *mctestConnector) Connect(_ context.Context, p *inventory.Profile) (*fleet.Connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	server := serverOf(p)
	member, ok := c.clusters[server]
	if !ok {
		return nil, fmt.Errorf("no cluster at %q", server)
	}
	cl, err := cluster.New(member.Config())
	if err != nil {
		return nil, err
	}
	c.opened++
	c.open[server]++
	connection := &fleet.Connection{
		Cluster: cl, Server: server, Fingerprint: server,
		Probe: func(ctx context.Context) (string, error) {
			namespace := &corev1.Namespace{}
			err := cl.GetAPIReader().Get(ctx, client.ObjectKey{Name: "kube-system"}, namespace)
			return string(namespace.UID), err
		},
		Close: func() {
			cl.GetHTTPClient().CloseIdleConnections()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.open[server]--
		},
	}
	if c.unprobed {
		connection.Probe = nil
	}
	return connection, nil
}

func (c *mctestConnector) NotifyChange(_ context.Context, changed func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = append(c.changed, changed)
}

// change notifies the fleet.
func (c *mctestConnector) change() {
	c.mu.Lock()
	changed := c.changed
	c.mu.Unlock()
	for _, f := range changed {
		f()
	}
}

func (c *mctestConnector) openTo(server string) func() int {
	return func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.open[server]
	}
}

func (c *mctestConnector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

// withConnector sets the Connector.
func withConnector(c fleet.Connector) func(*fleet.Options) {
	return func(o *fleet.Options) { o.Credentials, o.Connector = nil, c }
}

func TestConnectorLifecycle(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	g.Expect(c.Create(configMap("a"))).To(Succeed())
	connector := newMCTestConnector(c)
	env := start(t, nil, quickProbes, withConnector(connector))
	server := c.Config().Host

	env.source.put(profile("eu", "nowhere"))
	g.Eventually(func() string { return env.status("fleet/eu").LastError }).Should(ContainSubstring("no cluster at"))
	env.source.put(profile("eu", server))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl, err := env.Get(t.Context(), "fleet/eu")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(t, g, cl)).To(ConsistOf("a"))
	g.Expect(cl.GetConfig().Host).To(Equal(server))
	g.Expect(env.status("fleet/eu")).To(And(HaveField("Server", server), HaveField("UID", string(c.UID()))))
	current, ok := fleet.ProfileFrom(cl)
	g.Expect(ok).To(BeTrue())
	g.Expect(current.Name).To(Equal("eu"))

	c.Fault(mctest.Unavailable)
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Degraded))
	g.Expect(env.aware.healthOf("fleet/eu")).To(Equal([]bool{false}))
	c.Clear()
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))

	c.Rebuild()
	g.Eventually(func() []engagement { return env.aware.of("fleet/eu") }).Should(HaveLen(2))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(connector.openTo(server)()).To(Equal(1), "the first connection is closed")

	env.source.remove("eu")
	g.Eventually(env.state("fleet/eu")).Should(BeEmpty())
	g.Expect(connector.openTo(server)()).To(BeZero())
}

func TestConnectorFingerprint(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	first, second := f.Cluster(0).Config().Host, f.Cluster(1).Config().Host
	connector := newMCTestConnector(f.Clusters()...)
	env := start(t, nil, withConnector(connector))
	env.source.put(profile("eu", first))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))

	connector.change()
	g.Eventually(connector.count).Should(Equal(2))
	g.Eventually(connector.openTo(first)).Should(Equal(1), "the next one is closed")
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))

	env.source.put(profile("eu", second))
	g.Eventually(func() []engagement { return env.aware.of("fleet/eu") }).Should(HaveLen(2))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	g.Expect(connector.openTo(first)()).To(BeZero())
	g.Expect(connector.openTo(second)()).To(Equal(1))
}

func TestConnectionWithoutProbe(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	connector := newMCTestConnector(c)
	connector.unprobed = true
	env := start(t, nil, quickProbes, withConnector(connector), func(o *fleet.Options) { o.Connection.Probe.FailureThreshold = 1 })
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	c.Fault(mctest.Unavailable)
	g.Consistently(env.state("fleet/eu"), 200*time.Millisecond).Should(Equal(fleet.Ready))
}

func TestConnectorReturnsNil(t *testing.T) {
	g := NewWithT(t)
	env := start(t, nil, withConnector(nilConnector{}))
	env.source.put(profile("eu", "x"))
	g.Eventually(func() string { return env.status("fleet/eu").LastError }).Should(ContainSubstring("no cluster"))
}

// nilConnector is a Connector that returns no connection.
type nilConnector struct{}

func (nilConnector) Connect(context.Context, *inventory.Profile) (*fleet.Connection, error) {
	return nil, nil
}

func TestClusterOptionsFor(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 2)
	for _, c := range f.Clusters() {
		g.Expect(c.Create(configMap("a"), &corev1.Secret{ObjectMeta: configMap("b").ObjectMeta})).To(Succeed())
	}
	env := start(t, f.Clusters(), func(o *fleet.Options) {
		o.Connection.ClusterOptions = []cluster.Option{func(o *cluster.Options) { o.Client.Cache = &client.CacheOptions{} }}
		o.Connection.ClusterOptionsFor = func(p *inventory.Profile) []cluster.Option {
			if p.Name != f.Cluster(0).Name() {
				return nil
			}
			return []cluster.Option{func(o *cluster.Options) { o.Client.Cache.DisableFor = []client.Object{&corev1.ConfigMap{}} }}
		}
	})
	for i, watches := range []int{0, 1} {
		c := f.Cluster(i)
		env.source.put(profile(c.Name(), c.Config().Host))
		g.Eventually(env.state(name(c))).Should(Equal(fleet.Ready))
		cl, err := env.Get(t.Context(), name(c))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(t, g, cl)).To(ConsistOf("a"))
		g.Expect(c.OpenWatches("configmaps")).To(Equal(watches))
	}
}
