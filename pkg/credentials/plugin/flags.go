// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// commonFlags are the flags of every plugin.
type commonFlags struct {
	version bool
	explain bool
	timeout time.Duration
}

// newFlags returns the common flags and those of the plugin. Parsing them prints
// nothing.
func newFlags(p Plugin) (*flag.FlagSet, *commonFlags) {
	flags := flag.NewFlagSet(p.Name(), flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	common := &commonFlags{}
	flags.BoolVar(&common.version, "version", false, "print the version and exit")
	flags.BoolVar(&common.explain, "explain", false, "print what the plugin would do for the request, without secrets, and exit")
	flags.DurationVar(&common.timeout, "timeout", defaultTimeout, "`time` after which to give up; 0 for no limit")
	if f, ok := p.(Flagger); ok {
		f.AddFlags(flags)
	}
	flags.VisitAll(func(f *flag.Flag) {
		if getter, ok := f.Value.(flag.Getter); ok {
			if _, ok := getter.Get().(time.Duration); ok {
				f.Value = durationFlag{getter}
			}
		}
	})
	return flags, common
}

// durationFlag is a duration flag with a useful error: the flag package's is
// always "parse error".
type durationFlag struct{ flag.Getter }

func (d durationFlag) Set(text string) error {
	if _, err := time.ParseDuration(text); err != nil {
		return fmt.Errorf("%s is not a duration such as 25s", text)
	}
	return d.Getter.Set(text)
}

// String must also work for the zero value, on which the flag package calls it.
func (d durationFlag) String() string {
	if d.Getter == nil {
		return time.Duration(0).String()
	}
	return d.Getter.String()
}

// printHelp prints the help in the form of a cobra command. Flags are parsed by
// package flag, as plugins have always accepted those with one dash, too.
func printHelp(p Plugin, flags *flag.FlagSet, stdout io.Writer) {
	about := fmt.Sprintf("%s is a credential plugin. Kubernetes clients run it, with %s set.", p.Name(), execInfoVariable)
	if d, ok := p.(Describer); ok {
		about += "\n\n" + strings.TrimSpace(d.Description())
	}
	about += fmt.Sprintf("\n\nExit codes: %d credential printed, %d not obtained, %d wrong flags, %d bad request, %d timed out, %d interrupted.",
		ExitOK, ExitFailed, ExitUsage, ExitBadRequest, ExitTimedOut, ExitInterrupted)
	example := fmt.Sprintf(`
# Print what the plugin would do for a request, without doing it
%s='{"kind":"ExecCredential","apiVersion":"%s","spec":{"interactive":false}}' \
  %s --explain`, execInfoVariable, apiVersionV1, p.Name())
	if e, ok := p.(Exampler); ok {
		example = e.Example()
	}

	command := &cobra.Command{
		Use:     p.Name(),
		Long:    about,
		Example: "  " + strings.ReplaceAll(strings.TrimSpace(example), "\n", "\n  "),
		Run:     func(*cobra.Command, []string) {}, // cobra shows no usage without
	}
	flags.VisitAll(func(f *flag.Flag) {
		if d, ok := f.Value.(durationFlag); ok {
			f.Value = d.Getter // whose type has a name for users
		}
		command.Flags().AddGoFlag(f)
		if f.DefValue == "0s" {
			command.Flags().Lookup(f.Name).DefValue = "" // not shown
		}
	})
	command.InitDefaultHelpFlag()
	command.SetOut(stdout)
	_ = command.Help()
}
