// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp_test

import (
	"fmt"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/gcp"
)

// The plugin runs in the process of the controller, for entries of the provider
// file with inProcess: mc-credential-gcp. Their args set its flags.
func ExampleNew_inProcess() {
	resolver, err := credentials.New(credentials.Options{
		ProviderFile: "/etc/rollcall/providers.yaml",
		Plugins:      []func() plugin.Plugin{func() plugin.Plugin { return gcp.New() }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resolver.Close()
}

// Fields set the defaults of the flags.
func ExamplePlugin() {
	p := gcp.New()
	p.Impersonate = gcp.Impersonation{
		Account:   "viewer@p1.iam.gserviceaccount.com",
		Delegates: []string{"middle@p1.iam.gserviceaccount.com"},
	}
	p.Cache.Dir = "/var/cache/rollcall"
	fmt.Println(p.Name(), "impersonates", p.Impersonate)
	// Output:
	// mc-credential-gcp impersonates middle@p1.iam.gserviceaccount.com,viewer@p1.iam.gserviceaccount.com
}
