// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package check is the command that checks how profiles are reached, and the inventory
// itself.
package check

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/credentials/check"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

type options struct {
	env     *command.Env
	sources sources.Flags
	output  output.Flags

	all, hub    bool
	timeout     time.Duration
	parallelism int
	rules       string
	namespaces  []string
}

// New returns the command.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "check {PROFILE... | --all | --hub}",
		Short: "Find out why clusters cannot be reached",
		Long: `Check each profile as a controller would use it: the provider, the plugin, the credential and its expiry, the server, its certificate, who the credential belongs to, and which permissions it lacks. A failure has a cause and a remedy. Profiles are checked at the same time, each with its own time limit.

With --hub, check the inventory: profiles of one cluster that are not correlated, profiles without a member ID or a provider, decisions about profiles that do not exist, and profiles that the version v1alpha2 of the API rejects.

Exit codes: 0 all well, 1 a check failed or a finding is an error, 2 wrong flags or arguments.`,
		Example: `  # All steps of one profile
  mc-credential check east

  # All profiles of all namespaces, with the permissions that the controller needs
  mc-credential check --all -A --rules rules.yaml

  # The inventory in the namespace fleet of the hub, for a script
  mc-credential check --hub -n fleet -o json`,
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	o.sources.AddFlags(c)
	o.output.AddFlags(c, output.Table, output.Wide, output.JSON, output.YAML)
	flags := c.Flags()
	flags.BoolVar(&o.all, "all", false, "Check all profiles of the inventory")
	flags.BoolVar(&o.hub, "hub", false, "Check the inventory of the hub instead of connections")
	flags.DurationVar(&o.timeout, "timeout", check.DefaultTimeout, "Time limit of each profile")
	flags.IntVar(&o.parallelism, "parallel", check.DefaultParallelism, "How many profiles are checked at the same time, not counting those that wait for long")
	flags.StringVar(&o.rules, "rules", "", "A `file` with the RBAC rules that are needed in each cluster, such as a ClusterRole")
	flags.StringSliceVar(&o.namespaces, "rules-namespace", nil, "A namespace of each cluster in which the rules are needed, may be repeated (default all)")
	return c
}

func (o *options) run(ctx context.Context, names []string) error {
	format, err := o.output.Format()
	if err != nil {
		return err
	}
	rules, err := o.validate(names)
	if err != nil {
		return err
	}
	options := check.Options{Timeout: o.timeout, Parallelism: o.parallelism, Rules: rules, Namespaces: o.namespaces}
	o.sources.Credentials.MaxConcurrentRuns = check.ConcurrentRuns(options)
	opened, err := o.sources.Open(ctx, o.env)
	if err != nil {
		return err
	}
	defer opened.Close()
	if o.hub {
		return o.checkHub(ctx, opened, format)
	}
	if options.Method, err = opened.Credentials(); err != nil {
		return err
	}
	profiles, err := opened.Find(ctx, names...)
	if err != nil {
		return err
	}
	if len(profiles) == 0 {
		_, _ = fmt.Fprintln(o.env.ErrOut, "No profiles found.")
	}
	return o.print(format, o.checkAll(ctx, profiles, options))
}

// validate also reads the rules.
func (o *options) validate(names []string) ([]rbacv1.PolicyRule, error) {
	chosen := 0
	for _, set := range []bool{len(names) > 0, o.all, o.hub} {
		if set {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return nil, command.Usagef("name one or more profiles, or set one of --all and --hub")
	case o.hub && (o.sources.From != sources.Hub || o.sources.Selector != ""):
		return nil, command.Usagef("--hub checks the whole inventory of a hub: it goes neither with --from nor with --selector")
	case o.timeout <= 0 || o.parallelism <= 0:
		return nil, command.Usagef("--timeout and --parallel must be positive")
	case o.rules == "" && len(o.namespaces) > 0:
		return nil, command.Usagef("--rules-namespace needs --rules")
	case o.rules == "":
		return nil, nil
	case o.hub:
		return nil, command.Usagef("--rules is for checks of profiles, not for --hub")
	}
	data, err := os.ReadFile(o.rules)
	if err != nil {
		return nil, command.Usagef("--rules: %w", err)
	}
	rules, err := check.ParseRules(o.rules, data)
	if err != nil {
		return nil, command.Usagef("--rules: %w", err)
	}
	return rules, nil
}

func (o *options) checkAll(ctx context.Context, profiles []*inventory.Profile, options check.Options) []check.Report {
	progress := o.env.Progress("Checking", len(profiles))
	defer progress.End()
	return check.All(ctx, profiles, options, func(check.Report) { progress.Done() })
}
