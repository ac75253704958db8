// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package version is the command that prints the version of the program.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
)

// Text is the output format of one line.
const text output.Format = "text"

// Version is what the command prints.
type Version struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Get returns the version of the program that runs, from its build information.
func Get() Version {
	v := Version{Version: "(devel)", GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Commit = setting.Value
			}
		}
	}
	return v
}

// New returns the command.
func New(env *command.Env) *cobra.Command {
	flags := output.Flags{}
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Example: `  # As JSON, for scripts
  mc-credential version -o json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			format, err := flags.Format()
			if err != nil {
				return err
			}
			v := Get()
			if format == text {
				_, err := fmt.Fprintf(env.Out, "mc-credential %s %s %s\n", v.Version, v.GoVersion, v.Platform)
				return err
			}
			return flags.PrintValue(env.Out, v)
		},
	}
	flags.AddFlags(c, text, output.JSON, output.YAML)
	return c
}
