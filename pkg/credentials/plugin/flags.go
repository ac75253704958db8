// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
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

func printHelp(p Plugin, flags *flag.FlagSet, stdout io.Writer) {
	_, _ = fmt.Fprintf(stdout, "%s is a credential plugin. Kubernetes clients run it, with %s set.\n\nUsage: %s [flags]\n",
		p.Name(), execInfoVariable, p.Name())
	if d, ok := p.(Describer); ok {
		_, _ = fmt.Fprintf(stdout, "\n%s\n", strings.TrimSpace(d.Description()))
	}
	_, _ = fmt.Fprint(stdout, "\nFlags:\n")
	flags.SetOutput(stdout)
	flags.PrintDefaults()
	_, _ = fmt.Fprintf(stdout, "\nExit codes: %d credential printed, %d not obtained, %d wrong flags, %d bad request, %d timed out, %d interrupted.\n",
		ExitOK, ExitFailed, ExitUsage, ExitBadRequest, ExitTimedOut, ExitInterrupted)
}
