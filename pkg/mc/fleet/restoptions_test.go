// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// headerRecorder records the headers of all requests.
type headerRecorder struct {
	mu  sync.Mutex // guards all
	all []http.Header
}

func (h *headerRecorder) wrap(rt http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		h.mu.Lock()
		h.all = append(h.all, req.Header.Clone())
		h.mu.Unlock()
		return rt.RoundTrip(req)
	})
}

// of returns all values of a header.
func (h *headerRecorder) of(name string) map[string]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	values := map[string]bool{}
	for _, header := range h.all {
		values[header.Get(name)] = true
	}
	return values
}

func (h *headerRecorder) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestRESTOptions(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.AddToken("t", "user", "system:masters")
	seen, below := &headerRecorder{}, &headerRecorder{}
	var made *rest.Config
	env := start(t, nil, func(o *fleet.Options) {
		o.Connection.RESTOptions = []func(*rest.Config) error{
			func(config *rest.Config) error {
				config.UserAgent = "me"
				config.Impersonate.UserName = "other"
				config.QPS, config.Burst = 50, 100
				config.ContentType = "application/json"
				return nil
			},
			func(config *rest.Config) error {
				config.WrapTransport = seen.wrap // does not remove authentication
				return nil
			},
		}
		o.Connection.NewCluster = func(_ context.Context, _ *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
			made = rest.CopyConfig(config)
			return cluster.New(config, opts...)
		}
	})
	config := c.ConfigFor("t")
	config.Wrap(below.wrap)
	env.credentials.set(config.Host, config)
	env.source.put(profile("eu", c.Config().Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready), func() string { return env.status("fleet/eu").LastError })
	cl := env.aware.of("fleet/eu")[0].cluster
	g.Expect(names(t, g, cl)).To(BeEmpty())
	g.Expect(seen.of("User-Agent")).To(And(HaveLen(1), HaveKey("me")))
	g.Expect(below.of("User-Agent")).To(HaveKey("me"))
	g.Expect(seen.of("Impersonate-User")).To(And(HaveLen(1), HaveKey("other")))
	for _, config := range []*rest.Config{made, cl.GetConfig()} {
		g.Expect(config).To(And(HaveField("QPS", BeEquivalentTo(50)), HaveField("Burst", 100), HaveField("ContentType", "application/json")))
	}
}

func TestDefaultQPS(t *testing.T) {
	for _, tc := range []struct {
		name      string
		qps, want float32
	}{
		{"not set", 0, -1},
		{"set by the credential method", 20, 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			env := start(t, nil)
			config := c.Config()
			config.QPS = tc.qps
			env.credentials.set(config.Host, config)
			env.source.put(profile("eu", config.Host))
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
			g.Expect(env.aware.of("fleet/eu")[0].cluster.GetConfig().QPS).To(Equal(tc.want))
		})
	}
}

func TestForbiddenRESTOptions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(config *rest.Config) error
		want   string
	}{
		{"it fails", func(*rest.Config) error { return errors.New("failed") }, "failed"},
		{"Host", func(c *rest.Config) error { c.Host = "https://elsewhere"; return nil }, "must not change Host"},
		{"APIPath", func(c *rest.Config) error { c.APIPath = "/other"; return nil }, "must not change APIPath"},
		{"TLSClientConfig", func(c *rest.Config) error { c.Insecure = !c.Insecure; return nil }, "must not change TLSClientConfig"},
		{"DisableCompression", func(c *rest.Config) error { c.DisableCompression = !c.DisableCompression; return nil }, "must not change DisableCompression"},
		{"Transport", func(c *rest.Config) error { c.Transport = http.DefaultTransport; return nil }, "must not change Transport"},
		{"Dial", func(c *rest.Config) error { c.Dial = (&net.Dialer{}).DialContext; return nil }, "must not change Dial"},
		{"Proxy", func(c *rest.Config) error { c.Proxy = http.ProxyFromEnvironment; return nil }, "must not change Proxy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			env := start(t, []*mctest.Cluster{c}, func(o *fleet.Options) { o.Connection.RESTOptions = []func(*rest.Config) error{tc.change} })
			env.source.put(profile("eu", c.Config().Host))
			g.Eventually(func() string { return env.status("fleet/eu").LastError }).Should(
				And(HavePrefix("REST option: "), ContainSubstring(tc.want)))
			g.Expect(c.Connections()).To(BeZero())
		})
	}
}

func TestImpersonateAfterSwitch(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	c.AddToken("t", "user", "system:masters")
	seen := &headerRecorder{}
	var user atomic.Value
	user.Store("one")
	env := start(t, nil, func(o *fleet.Options) {
		o.Connection.RESTOptions = []func(*rest.Config) error{func(config *rest.Config) error {
			config.Impersonate.UserName = user.Load().(string)
			return nil
		}}
	})
	config := func() *rest.Config { // each is another access, because of the wrapper
		config := c.ConfigFor("t")
		config.Wrap(seen.wrap)
		return config
	}
	server := config().Host
	env.credentials.set(server, config())
	env.source.put(profile("eu", server))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster

	user.Store("two")
	env.credentials.set(server, config())
	env.credentials.change()
	g.Eventually(func() string { return cl.GetConfig().Impersonate.UserName }).Should(Equal("two"))
	seen.reset()
	g.Expect(cl.GetAPIReader().List(t.Context(), &corev1.ConfigMapList{})).To(Succeed())
	g.Expect(seen.of("Impersonate-User")).To(Equal(map[string]bool{"two": true}))
	g.Expect(env.aware.of("fleet/eu")).To(HaveLen(1))
}

func TestServerWithoutScheme(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	env := start(t, nil)
	config := c.Config()
	config.Host = strings.TrimPrefix(config.Host, "https://")
	env.credentials.set("x", config)
	env.source.put(profile("eu", "x"))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	cl := env.aware.of("fleet/eu")[0].cluster
	g.Expect(cl.GetAPIReader().List(t.Context(), &corev1.ConfigMapList{})).To(Succeed())
}
