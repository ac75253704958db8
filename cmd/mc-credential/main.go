// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Command mc-credential works with an inventory of clusters and its credential
// plugins. As kubectl-mc_credential in PATH it is also "kubectl mc-credential".
package main

import (
	"os"

	"github.com/rollcall-dev/rollcall/internal/cli"
)

func main() { os.Exit(cli.Main()) }
