// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc_test

import (
	"fmt"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/oidc"
)

// The plugin runs in the process of the controller, for entries of the provider
// file with inProcess: mc-credential-oidc. Their args set its flags.
func ExampleNew_inProcess() {
	resolver, err := credentials.New(credentials.Options{
		ProviderFile: "/etc/rollcall/providers.yaml",
		Plugins:      []func() plugin.Plugin{func() plugin.Plugin { return oidc.New() }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resolver.Close()
}

// Fields set the defaults of the flags.
func ExamplePlugin() {
	p := oidc.New()
	p.ServiceAccount = "fleet/members"
	p.AllowedAudiences = []oidc.AllowedAudience{{Audience: "fleet-*", Server: "https://*.example.com:6443"}}
	fmt.Println(p.Name(), "allows", p.AllowedAudiences[0])
	// Output:
	// mc-credential-oidc allows fleet-*=https://*.example.com:6443
}
