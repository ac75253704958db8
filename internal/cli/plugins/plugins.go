// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package plugins has the commands about installed credential plugins.
package plugins

import (
	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
)

// New returns the command.
func New(env *command.Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "plugins",
		Short: "List and verify credential plugins, and print how to deploy them",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newList(env), newVerify(env), newManifest(env))
	return c
}
