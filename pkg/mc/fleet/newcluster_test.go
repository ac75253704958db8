// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

// withNewCluster changes the config of all clusters.
func withNewCluster(change func(*rest.Config) *rest.Config) func(*fleet.Options) {
	return func(o *fleet.Options) {
		o.Connection.NewCluster = func(_ context.Context, _ *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
			return cluster.New(change(config), opts...)
		}
	}
}

func TestWrapperOfNewCluster(t *testing.T) {
	for name, copied := range map[string]func(*rest.Config) *rest.Config{
		"the config":           func(c *rest.Config) *rest.Config { return c },
		"a copy of the config": rest.CopyConfig,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			seen := &headerRecorder{}
			env := start(t, []*mctest.Cluster{c}, withNewCluster(func(config *rest.Config) *rest.Config {
				config = copied(config)
				config.Wrap(seen.wrap)
				return config
			}))
			env.source.put(profile("eu", c.Config().Host))
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
			cl := env.aware.of("fleet/eu")[0].cluster
			own, err := client.New(cl.GetConfig(), client.Options{})
			g.Expect(err).NotTo(HaveOccurred())
			for name, reader := range map[string]client.Reader{"its client": cl.GetAPIReader(), "a client of GetConfig": own} {
				seen.reset()
				g.Expect(reader.List(t.Context(), &corev1.ConfigMapList{})).To(Succeed())
				g.Expect(seen.of("User-Agent")).NotTo(BeEmpty(), name)
			}
		})
	}
}

func TestNewClusterWithOtherTransport(t *testing.T) {
	for name, change := range map[string]func(*rest.Config) *rest.Config{
		"replaced": func(config *rest.Config) *rest.Config {
			config.Transport = http.DefaultTransport
			return config
		},
		"wrapped": func(config *rest.Config) *rest.Config {
			config.Transport = transport.NewUserAgentRoundTripper("me", config.Transport)
			return config
		},
		"another config": func(config *rest.Config) *rest.Config { return &rest.Config{Host: config.Host} },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			env := start(t, []*mctest.Cluster{c}, withNewCluster(change), func(o *fleet.Options) {
				o.Connection.MaxBackoff, o.Connection.MinBackoff = time.Hour, time.Hour
			})
			env.source.put(profile("eu", c.Config().Host))
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Backoff))
			g.Expect(env.status("fleet/eu").LastError).To(ContainSubstring("NewCluster: must not replace Transport"))
		})
	}
}
