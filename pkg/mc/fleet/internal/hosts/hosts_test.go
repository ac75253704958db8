// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hosts_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientmetrics "k8s.io/client-go/tools/metrics"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/hosts"
)

// seen returns the names of the metrics that have a series for the host.
func seen(g *WithT, host string) []string {
	families, err := ctrlmetrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	names := []string{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "host" && label.GetValue() == host {
					names = append(names, family.GetName())
				}
			}
		}
	}
	return names
}

// request counts a request as client-go does.
func request(host string) {
	ctx := context.Background()
	u := url.URL{Scheme: "https", Host: host}
	clientmetrics.RequestResult.Increment(ctx, "200", "GET", host)
	clientmetrics.RequestRetry.IncrementRetry(ctx, "429", "GET", host)
	clientmetrics.RequestLatency.Observe(ctx, "GET", u, time.Second)
	clientmetrics.RateLimiterLatency.Observe(ctx, "GET", u, time.Second)
	clientmetrics.RequestSize.Observe(ctx, "GET", host, 1)
	clientmetrics.ResponseSize.Observe(ctx, "GET", host, 1)
	clientmetrics.ResolverLatency.Observe(ctx, u.Hostname(), time.Second)
}

func TestMetricsOfHosts(t *testing.T) {
	g := NewWithT(t)
	request("hub:443")
	var first, second, hub hosts.Use
	first.Begin("https://a:1/path")
	second.Begin("https://a:1")
	hub.Begin("https://hub:443")
	for _, host := range []string{"a:1", "hub:443"} {
		request(host)
		g.Expect(seen(g, host)).To(ContainElement("rest_client_requests_total"))
	}

	first.End()
	g.Expect(seen(g, "a:1")).NotTo(BeEmpty(), "another cluster uses it")
	second.Move("https://b:1")
	request("b:1")
	g.Expect(seen(g, "a:1")).NotTo(BeEmpty(), "its client keeps the URL")
	second.Move("https://c:1")
	request("c:1")
	g.Expect(seen(g, "b:1")).To(BeEmpty())
	second.Move("https://a:1")
	g.Expect(seen(g, "c:1")).To(BeEmpty())
	second.End()
	second.End()
	second.Move("https://d:1")
	g.Expect(seen(g, "a:1")).To(BeEmpty())
	hub.End()
	g.Expect(seen(g, "hub:443")).NotTo(BeEmpty(), "the manager uses it")
}

func TestOptionalMetricsOfHosts(t *testing.T) {
	g := NewWithT(t)
	ctrlmetrics.RegisterRESTClientMetrics(ctrlmetrics.MetricRequestLatency, ctrlmetrics.MetricDNSResolutionLatency,
		ctrlmetrics.MetricRequestSize, ctrlmetrics.MetricResponseSize, ctrlmetrics.MetricRateLimiterLatency, ctrlmetrics.MetricRequestRetry)
	var use hosts.Use
	use.Begin("https://e:1")
	request("e:1")
	g.Expect(seen(g, "e:1")).To(HaveLen(6))
	g.Expect(seen(g, "e")).To(HaveLen(1))
	use.End()
	g.Expect(seen(g, "e:1")).To(BeEmpty())
	g.Expect(seen(g, "e")).To(BeEmpty())
}
