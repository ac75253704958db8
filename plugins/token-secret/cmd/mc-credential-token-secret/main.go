// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Command mc-credential-token-secret is a credential plugin that prints a
// credential from a Secret in the hub.
package main

import (
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

func main() { plugin.Main(tokensecret.New()) }
