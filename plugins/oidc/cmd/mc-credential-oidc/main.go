// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Command mc-credential-oidc is a credential plugin that prints a token of a
// ServiceAccount of the hub for a member cluster that trusts the hub's issuer.
package main

import (
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/oidc"
)

func main() { plugin.Main(oidc.New()) }
