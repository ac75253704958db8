// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/check"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// hangingPlugin prints the token, or hangs if the config of the cluster asks for it.
type hangingPlugin struct{}

func (hangingPlugin) Name() string    { return "hanging" }
func (hangingPlugin) Version() string { return "v1.0.0" }

func (hangingPlugin) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	if strings.Contains(string(request.Cluster.Config), "hang") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &plugin.Credential{Token: token, Expiry: time.Now().Add(time.Hour)}, nil
}

// Of 200 profiles, the plugin of ten hangs and the server of ten others. All have one
// provider, and each has a plugin run of its own.
func TestAllTakesAsLongAsOne(t *testing.T) {
	g := NewWithT(t)
	const limit = 8 * time.Second
	provider := providerfile.Provider{Name: "script", Rollcall: providerfile.Extensions{InProcess: "hanging"}}
	good := newAPIServer(t, &apiServer{user: "jane"}, nil)
	hanging := newAPIServer(t, &apiServer{override: hang}, nil)
	options := check.Options{Timeout: limit}
	options.Method = newResolver(t, credentials.Options{
		MaxConcurrentRuns: check.ConcurrentRuns(options), Plugins: []func() plugin.Plugin{func() plugin.Plugin { return hangingPlugin{} }},
	}, provider)
	var profiles []*inventory.Profile
	for i := range 200 {
		config := fmt.Sprintf(`{"cluster":"c%d"}`, i)
		cluster := good.cluster()
		switch i % 20 {
		case 3:
			config = fmt.Sprintf(`{"cluster":"hang%d"}`, i)
		case 13:
			cluster = hanging.cluster()
		}
		profiles = append(profiles, profileOf(fmt.Sprintf("c%d", i), withConfig(cluster, config)))
	}

	start := time.Now()
	finished := 0
	reports := check.All(t.Context(), profiles, options, func(check.Report) { finished++ })
	took := time.Since(start)
	t.Logf("200 profiles took %s", took)
	g.Expect(took).To(BeNumerically("<", limit+limit/4), "one profile may take %s", limit)
	g.Expect(finished).To(Equal(200))
	for i, report := range reports {
		g.Expect(report.Profile).To(Equal(fmt.Sprintf("fleet/c%d", i)))
		switch i % 20 {
		case 3:
			g.Expect(report.Failure()).NotTo(BeNil())
			g.Expect(report.Failure().Cause).To(Equal(check.PluginTimeout))
			g.Expect(report.Step(check.StepServer).Status).To(Equal(check.OK))
		case 13:
			g.Expect(report.Failure()).NotTo(BeNil())
			g.Expect(report.Failure().Cause).To(Equal(check.NoResponse))
			g.Expect(report.Step(check.StepCredential).Status).To(Equal(check.OK))
		default:
			g.Expect(report.OK).To(BeTrue(), "%+v", report)
		}
	}
}

func TestAllSharesRuns(t *testing.T) {
	g := NewWithT(t)
	server := newAPIServer(t, &apiServer{user: "jane"}, nil)
	provider := scriptPlugin(t, `[ -e "$0.ran" ] && exit 1; : > "$0.ran"`, "echo '"+credentialOf(token, time.Now().Add(time.Hour))+"'")
	var profiles []*inventory.Profile
	for range 5 {
		profiles = append(profiles, profileOf("c1", server.cluster()))
	}
	method := newResolver(t, credentials.Options{}, provider)
	for _, report := range check.All(t.Context(), profiles, check.Options{Method: method, Parallelism: 1}, nil) {
		g.Expect(report.OK).To(BeTrue(), "%+v", report)
	}
}

func TestCanceled(t *testing.T) {
	g := NewWithT(t)
	server := newAPIServer(t, &apiServer{user: "jane"}, nil)
	method := newResolver(t, credentials.Options{}, scriptPlugin(t, "exec sleep 600"))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	profiles := []*inventory.Profile{profileOf("c1", server.cluster()), profileOf("c2", server.cluster())}
	start := time.Now()
	reports := check.All(ctx, profiles, check.Options{Method: method, Parallelism: 1}, nil)
	g.Expect(time.Since(start)).To(BeNumerically("<", 5*time.Second))
	for _, report := range reports {
		g.Expect(report.Failure()).NotTo(BeNil())
		g.Expect(report.Failure().Cause).To(Equal(check.Canceled))
		g.Expect(report.Failure().Remedy).NotTo(BeEmpty())
	}
	g.Expect(check.All(t.Context(), nil, check.Options{Method: method}, nil)).To(BeEmpty())
}
