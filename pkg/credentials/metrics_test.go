// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// series returns the values of a metric by its label values, "provider/outcome".
// Of a histogram it is the count.
func series(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "rollcall_credentials_"+name {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			key := strings.TrimSuffix(labels["provider"]+"/"+labels["outcome"], "/")
			values[key] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
				float64(metric.GetHistogram().GetSampleCount())
		}
	}
	return values
}

var allMetrics = []string{"obtained_total", "run_duration_seconds", "expiry_seconds", "runs_in_flight"}

func TestOutcomeMetrics(t *testing.T) {
	v1 := "client.authentication.k8s.io/v1"
	for _, test := range []struct {
		outcome string
		timed   bool
		prepare func(*fakePlugin, *credentials.Options)
	}{
		{"success", true, func(p *fakePlugin, _ *credentials.Options) { p.output("t1", future()) }},
		{"failed", true, func(p *fakePlugin, _ *credentials.Options) { p.set("code", "1") }},
		{"invalid_output", true, func(*fakePlugin, *credentials.Options) {}},
		{"expired", true, func(p *fakePlugin, _ *credentials.Options) { p.output("t1", time.Unix(1, 0)) }},
		{"timeout", true, func(p *fakePlugin, o *credentials.Options) { p.shut(); o.Timeout = 100 * time.Millisecond }},
		{"missing", false, func(_ *fakePlugin, o *credentials.Options) { o.Providers[0].ExecConfig.Command = "/does/not/exist" }},
		{"denied", false, func(_ *fakePlugin, o *credentials.Options) {
			o.AllowedCommands = []credentials.AllowedCommand{
				{Command: o.Providers[0].ExecConfig.Command, SHA256: []string{strings.Repeat("0", 64)}},
			}
		}},
	} {
		t.Run(test.outcome, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.set("output", execCredential(v1, nil))
			options := credentials.Options{Providers: []providerfile.Provider{plugin.provider()}}
			test.prepare(plugin, &options)
			access := resolve(t, newResolver(t, options), server.profile("c1"))
			client := httpClient(t, access.RESTConfig())
			for range 3 {
				_, _, _ = get(client, server.URL)
			}
			g.Expect(series(t, "obtained_total")).To(Equal(map[string]float64{"fake/" + test.outcome: 1}))
			timed := map[string]float64{}
			if test.timed {
				timed["fake"] = 1
			}
			g.Expect(series(t, "run_duration_seconds")).To(Equal(timed))
		})
		for _, name := range allMetrics {
			if left := series(t, name); len(left) > 0 {
				t.Errorf("%s: left are %v", name, left)
			}
		}
	}
}

func TestGauges(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", time.Now().Add(20*time.Minute))
	plugin.shut()
	provider := plugin.provider()
	provider.ExecConfig.ProvideClusterInfo = true
	resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}})
	client := httpClient(t, resolve(t, resolver, server.profile("c1", extension(configExtension, `{"n":1}`))).RESTConfig())
	done := make(chan error)
	go func() {
		_, _, err := get(client, server.URL)
		done <- err
	}()
	g.Eventually(func() int { return len(plugin.runs()) }).Should(Equal(1))
	g.Expect(series(t, "runs_in_flight")).To(Equal(map[string]float64{"fake": 1}))
	g.Expect(series(t, "expiry_seconds")).To(BeEmpty())
	plugin.open()
	g.Expect(<-done).To(Succeed())
	g.Eventually(func() map[string]float64 { return series(t, "runs_in_flight") }).Should(Equal(map[string]float64{"fake": 0}))

	// Of all clusters of the provider, the first counts.
	plugin.output("t1", time.Now().Add(10*time.Minute))
	second := resolve(t, resolver, server.profile("c2", extension(configExtension, `{"n":2}`)))
	getAll(t, httpClient(t, second.RESTConfig()), server.URL, 1, 200)
	g.Expect(series(t, "expiry_seconds")["fake"]).To(And(BeNumerically(">", 590), BeNumerically("<=", 600)))
	second.Release()
	g.Expect(series(t, "expiry_seconds")["fake"]).To(And(BeNumerically(">", 1190), BeNumerically("<=", 1200)))
}

func TestSeriesOfRemovedProvider(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	path := filepath.Join(t.TempDir(), "providers.yaml")
	file := func(name string) string {
		return `{"providers":[{"name":"` + name + `","execConfig":{"apiVersion":"client.authentication.k8s.io/v1","command":"` + executable(t) +
			`","args":["-test.run=none"],"env":[{"name":"` + fakePluginVariable + `","value":"` + plugin.dir + `"}]}}]}`
	}
	replaced(t, path, file("fake"))
	resolver := newResolver(t, credentials.Options{ProviderFile: path})
	access := resolve(t, resolver, server.profile("c1"))
	getAll(t, httpClient(t, access.RESTConfig()), server.URL, 1, 200)
	access.Release()
	g.Expect(series(t, "obtained_total")).To(Equal(map[string]float64{"fake/success": 1}), "the provider is still known")
	g.Expect(series(t, "runs_in_flight")).To(BeEmpty(), "but not in use")

	access = resolve(t, resolver, server.profile("c1"))
	getAll(t, httpClient(t, access.RESTConfig()), server.URL, 1, 200)
	replaced(t, path, file("other"))
	settle(t, resolver)
	_, err := resolver.Resolve(t.Context(), profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"}))
	g.Expect(errors.Is(err, credentials.ErrNoProvider)).To(BeTrue())
	g.Expect(series(t, "obtained_total")).To(Equal(map[string]float64{"fake/success": 2}), "it is still in use")
	access.Release()
	for _, name := range allMetrics {
		g.Expect(series(t, name)).To(BeEmpty(), name)
	}
}

func TestSeriesOfTwoResolvers(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
	plugin.output("t1", future())
	first, second := onePlugin(t, plugin), onePlugin(t, plugin)
	for _, resolver := range []*credentials.Resolver{first, second} {
		getAll(t, httpClient(t, resolve(t, resolver, server.profile("c1")).RESTConfig()), server.URL, 1, 200)
	}
	g.Expect(series(t, "obtained_total")).To(Equal(map[string]float64{"fake/success": 2}))
	first.Close()
	g.Expect(series(t, "obtained_total")).To(Equal(map[string]float64{"fake/success": 2}))
	second.Close()
	second.Close()
	g.Expect(series(t, "obtained_total")).To(BeEmpty())
}

func TestMetricsHaveNoSecret(t *testing.T) {
	g := NewWithT(t)
	plugin, server := newFakePlugin(t), newServer(t, "Bearer s3cret")
	plugin.output("s3cret", future())
	getAll(t, httpClient(t, resolve(t, onePlugin(t, plugin), server.profile("c1")).RESTConfig()), server.URL, 1, 200)
	families, err := ctrlmetrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	found := false
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "rollcall_credentials_") {
			continue
		}
		found = true
		g.Expect(family.String()).NotTo(ContainSubstring("s3cret"))
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				g.Expect(label.GetName()).To(BeElementOf("provider", "outcome"), "whose values are few")
			}
		}
	}
	g.Expect(found).To(BeTrue())
}
