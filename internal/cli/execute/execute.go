// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package execute is the command exec: it runs a program for each cluster.
package execute

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/kubeconfig"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// text is the output format of lines with the name of the cluster.
const text output.Format = "text"

type options struct {
	env     *command.Env
	sources sources.Flags
	output  output.Flags

	all      bool
	parallel int
	timeout  time.Duration
}

// New returns the command.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "exec {PROFILE... | -l SELECTOR | --all} -- PROGRAM [ARG...]",
		Short: "Run a program for each cluster",
		Long: `Run a program for each cluster, with KUBECONFIG set to a temporary kubeconfig of that cluster. Lines of its output begin with the name of the cluster. The exit code is the highest one.

For one profile that is given by name, the program has the streams of this one, so that it may ask questions. Otherwise the programs run at the same time and have no standard input.`,
		Example: `  # Versions of all production clusters
  mc-credential exec -l env=prod -- kubectl version

  # Upgrade a chart in two clusters, one after the other
  mc-credential exec eu us --parallel 1 -- helm upgrade web ./chart

  # A shell for one cluster
  mc-credential exec eu -- bash`,
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args, c.ArgsLenAtDash()) },
	}
	o.sources.AddFlags(c)
	o.output.AddFlags(c, text, output.JSON, output.YAML)
	c.Flags().BoolVar(&o.all, "all", false, "All profiles of the inventory")
	c.Flags().IntVar(&o.parallel, "parallel", 16, "How many programs run at the same time")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "After which time a program is ended; 0 for never")
	return c
}

func (o *options) run(ctx context.Context, args []string, dash int) error {
	format, err := o.output.Format()
	if err != nil {
		return err
	}
	names, program, err := o.complete(args, dash)
	if err != nil {
		return err
	}
	writer, err := kubeconfig.NewWriter(o.env, &o.sources)
	if err != nil {
		return err
	}
	opened, err := o.sources.Open(ctx, o.env)
	if err != nil {
		return err
	}
	defer opened.Close()
	method, err := opened.Credentials()
	if err != nil {
		return err
	}
	profiles, err := opened.Find(ctx, names...)
	if err != nil {
		return err
	}
	if len(profiles) == 0 {
		return errors.New("no profile is selected: see 'mc-credential list'")
	}
	r := &runner{options: o, program: program, writer: writer, method: method}
	if len(names) == 1 && format == text {
		return r.runAttached(ctx, profiles[0])
	}
	results, err := r.runAll(ctx, profiles, format == text)
	if err != nil {
		return err
	}
	if format != text {
		if err := o.output.PrintValue(o.env.Out, results); err != nil {
			return err
		}
	}
	return o.worst(ctx, results, format == text)
}

func (o *options) complete(args []string, dash int) (names, program []string, err error) {
	if dash < 0 {
		return nil, nil, command.Usagef("write -- before the program, as in 'mc-credential exec eu -- kubectl get nodes'")
	}
	names, program = args[:dash], args[dash:]
	switch {
	case len(program) == 0:
		return nil, nil, command.Usagef("name a program after --")
	case slices.Contains(names, ""):
		return nil, nil, command.Usagef("the name of a profile must not be empty")
	case o.all && len(names) > 0:
		return nil, nil, command.Usagef("--all and the names of profiles exclude each other")
	case !o.all && len(names) == 0 && o.sources.Selector == "":
		return nil, nil, command.Usagef("name profiles, or set --selector or --all")
	case o.parallel < 1:
		return nil, nil, command.Usagef("--parallel must be at least 1")
	}
	if _, err := exec.LookPath(program[0]); err != nil {
		return nil, nil, command.Usagef("%v", err)
	}
	return names, program, nil
}

// worst returns the error with the highest exit code.
func (o *options) worst(ctx context.Context, results []*result, printErrors bool) error {
	worst, failed := 0, 0
	for _, r := range results {
		if r.ExitCode != 0 {
			failed++
			worst = max(worst, r.ExitCode)
		}
		if r.Error != "" && printErrors {
			_, _ = fmt.Fprintf(o.env.ErrOut, "%s %s: %s\n", o.env.PaintErr(command.Red, "✗"), command.OneLine(r.Cluster), command.OneLine(r.Error))
		}
	}
	switch {
	case ctx.Err() != nil:
		return command.Exit(max(worst, command.ExitFailed), errors.New("interrupted"))
	case failed > 0:
		return command.Exit(worst, fmt.Errorf("%d of %d clusters failed", failed, len(results)))
	}
	return nil
}

// result is what is known of the program for one cluster.
type result struct {
	Cluster  string `json:"cluster"`
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error,omitempty"`
	Stdout   string `json:"stdout,omitempty"`
	Stderr   string `json:"stderr,omitempty"`

	profile *inventory.Profile
}
