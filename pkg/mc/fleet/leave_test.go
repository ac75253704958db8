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

func TestAClusterThatLeavesKeepsNoConnection(t *testing.T) {
	const soon = 5 * time.Second // an idle connection would be kept for 90 s
	for _, tc := range []struct {
		name  string
		fault mctest.Fault
	}{
		{"while it is slow", mctest.Slow(100 * time.Millisecond)},
		{"while it hangs", mctest.Hang},
		{"while its network swallows everything", mctest.Freeze},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := mctest.New(t)
			w := start(t, []*mctest.Cluster{c})
			w.list.put(profile("eu", c.Config().Host))
			g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
			cl, err := w.Get(t.Context(), "fleet/eu")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(names(t, g, cl)).To(BeEmpty()) // starts a watch
			g.Expect(c.Connections()).To(Equal(1))

			c.Fault(tc.fault)
			asked := make(chan error, 1)
			go func() { asked <- cl.GetAPIReader().List(t.Context(), &corev1.SecretList{}) }()
			w.list.remove("eu")
			g.Eventually(w.state("fleet/eu")).WithTimeout(soon).Should(BeEmpty())
			g.Eventually(asked).WithTimeout(soon).Should(Receive(), "whoever does not keep to the cluster's context is not left hanging")
			c.Clear()
			g.Eventually(c.Connections).WithTimeout(soon).Should(BeZero())
		})
	}
}

// closable counts how often its idle connections are closed.
type closable struct {
	http.RoundTripper
	closed *atomic.Int64
}

func (c closable) CloseIdleConnections() { c.closed.Add(1) }

func TestIdleConnectionsAreClosedBeneathAnyRESTOption(t *testing.T) {
	g := NewWithT(t)
	c := mctest.New(t)
	var closed atomic.Int64
	config := c.Config()
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return closable{rt, &closed} })
	w := start(t, nil, func(o *fleet.Options) {
		o.Connection.RESTOptions = []func(*rest.Config) error{func(config *rest.Config) error {
			config.Wrap((&headers{}).wrap) // which tells nobody what it wraps
			return nil
		}}
	})
	w.method.lead(config.Host, config)
	w.list.put(profile("eu", config.Host))
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(Equal(fleet.Ready))
	_, err := rest.TransportFor(w.engagements.of("fleet/eu")[0].cluster.GetConfig())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(closed.Load()).To(BeZero())
	w.list.remove("eu")
	g.Eventually(w.state("fleet/eu")).WithTimeout(patience).Should(BeEmpty())
	g.Expect(closed.Load()).To(BeNumerically(">", 0))
}
