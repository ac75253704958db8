// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestDisengagedClusterHasNoConnection(t *testing.T) {
	const soon = 5 * time.Second // an idle connection would be kept for 90 s
	for _, tc := range []struct {
		name  string
		fault mctest.Fault
	}{
		{"slow", mctest.Slow(100 * time.Millisecond)},
		{"no response", mctest.Hang},
		{"packets are dropped", mctest.Freeze},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			env := start(t, []*mctest.Cluster{c})
			env.source.put(profile("eu", c.Config().Host))
			g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
			cl, err := env.Get(t.Context(), "fleet/eu")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(names(t, g, cl)).To(BeEmpty()) // starts a watch
			g.Expect(c.Connections()).To(Equal(1))

			c.Fault(tc.fault)
			listed := make(chan error, 1)
			go func() { listed <- cl.GetAPIReader().List(t.Context(), &corev1.SecretList{}) }()
			env.source.remove("eu")
			g.Eventually(env.state("fleet/eu")).WithTimeout(soon).Should(BeEmpty())
			g.Eventually(listed).WithTimeout(soon).Should(Receive(), "requests without the cluster's context end, too")
			c.Clear()
			g.Eventually(c.Connections).WithTimeout(soon).Should(BeZero())
		})
	}
}

// closeCounter counts calls of CloseIdleConnections.
type closeCounter struct {
	http.RoundTripper
	closed *atomic.Int64
}

func (c closeCounter) CloseIdleConnections() { c.closed.Add(1) }

func TestIdleConnectionsAreClosed(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	var closed atomic.Int64
	config := c.Config()
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return closeCounter{rt, &closed} })
	env := start(t, nil, func(o *fleet.Options) {
		o.Connection.RESTOptions = []func(*rest.Config) error{func(config *rest.Config) error {
			config.Wrap((&headerRecorder{}).wrap) // it has no WrappedRoundTripper
			return nil
		}}
	})
	env.credentials.set(config.Host, config)
	env.source.put(profile("eu", config.Host))
	g.Eventually(env.state("fleet/eu")).Should(Equal(fleet.Ready))
	_, err := rest.TransportFor(env.aware.of("fleet/eu")[0].cluster.GetConfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(closed.Load()).To(BeZero())
	env.source.remove("eu")
	g.Eventually(env.state("fleet/eu")).Should(BeEmpty())
	g.Expect(closed.Load()).To(BeNumerically(">", 0))
}
