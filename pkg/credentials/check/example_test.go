// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"context"
	"fmt"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/check"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// The plugin works. No API server listens at the address in the profile.
func ExampleAll() {
	profile := &inventory.Profile{}
	profile.Namespace, profile.Name = "fleet", "c1"
	profile.Status.AccessProviders = []inventory.AccessProvider{{Name: "vault", Cluster: clientcmdv1.Cluster{Server: "https://127.0.0.1:1"}}}
	options := check.Options{}
	resolver, err := credentials.New(credentials.Options{
		Providers:         []providerfile.Provider{{Name: "vault", Rollcall: providerfile.Extensions{InProcess: "hanging"}}},
		Plugins:           []func() plugin.Plugin{func() plugin.Plugin { return hangingPlugin{} }},
		MaxConcurrentRuns: check.ConcurrentRuns(options),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resolver.Close()
	options.Method = resolver

	for _, report := range check.All(context.Background(), []*inventory.Profile{profile}, options, nil) {
		fmt.Println(report.Profile, "credential:", report.Step(check.StepCredential).Status)
		if step := report.Failure(); step != nil {
			fmt.Printf("%s: %s: %s\n", step.Name, step.Cause, step.Remedy)
		}
	}
	// Output:
	// fleet/c1 credential: ok
	// Server: ConnectionRefused: check that the API server runs, and its port
}
