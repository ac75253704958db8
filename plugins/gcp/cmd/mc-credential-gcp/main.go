// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Command mc-credential-gcp is a credential plugin that prints access tokens of
// Google Cloud.
package main

import (
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/gcp"
)

func main() { plugin.Main(gcp.New()) }
