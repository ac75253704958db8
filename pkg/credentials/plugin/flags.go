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

// ownFlags are the flags that every plugin has.
type ownFlags struct {
	version bool
	explain bool
	timeout time.Duration
}

// newFlags returns the flags of the plugin, joined with those that every plugin
// has. Parsing them prints nothing.
func newFlags(p Plugin) (*flag.FlagSet, *ownFlags) {
	flags := flag.NewFlagSet(p.Name(), flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	own := &ownFlags{}
	flags.BoolVar(&own.version, "version", false, "print the version and exit")
	flags.BoolVar(&own.explain, "explain", false, "print what would be done for the request, without secrets, and exit")
	flags.DurationVar(&own.timeout, "timeout", defaultTimeout, "`time` after which to give up; 0 for no limit")
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
	return flags, own
}

// durationFlag is a flag of the flag package, of which every fault is a "parse
// error".
type durationFlag struct{ flag.Getter }

func (d durationFlag) Set(text string) error {
	if _, err := time.ParseDuration(text); err != nil {
		return fmt.Errorf("%s is not a duration such as 25s", text)
	}
	return d.Getter.Set(text)
}

// String is called by the flag package for the zero value, too.
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
	_, _ = fmt.Fprintf(stdout, "\nExit codes: %d credential printed, %d not obtained, %d wrong flags, %d wrong request, %d timed out, %d interrupted.\n",
		ExitOK, ExitFailed, ExitUsage, ExitBadRequest, ExitTimedOut, ExitInterrupted)
}
