// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package register has the commands that add a cluster to a hub without a cluster
// manager, and remove it again.
package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
)

// text is the output format of one line per object.
const text output.Format = "text"

type options struct {
	env    *command.Env
	member member
	output output.Flags

	access, rules, authority, serviceAccount, trustFile string
	register                                            register.Options
}

// New returns the command register.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "register NAME",
		Short: "Add a cluster to a hub without a cluster manager",
		Long: `Add a cluster to the hub: a user with the permissions of a rules file in the cluster, the member, and a ClusterProfile in the hub.

Controllers connect by one of these access providers:

  oidc          with tokens of a ServiceAccount of the hub, where the member trusts the hub. No secret is stored.
  token-secret  with a token in a Secret of the hub, which 'mc-credential rotate' renews.

The default is oidc if --service-account is set and the member trusts the hub, else token-secret. With --access=oidc, and if the member does not trust the hub yet, nothing is changed, and the output is the configuration that the API server of the member needs.

The command can be repeated: to change options, and to complete what was interrupted. The credentials of --member-context are not stored.`,
		Example: `  # Add the cluster of the context east to the inventory in the namespace fleet of the current context
  mc-credential register east -n fleet --member-context east --rules rules.yaml

  # rules.yaml has what controllers may do in the member:
  #   rules:
  #   - apiGroups: [""]
  #     resources: ["configmaps"]
  #     verbs: ["get", "list", "watch"]

  # Without a stored secret: print what the member's API server needs, or register it
  mc-credential register east -n fleet --member-context east --rules rules.yaml \
    --access oidc --service-account fleet/members`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	r, flags := &o.register, c.Flags()
	o.member.addFlags(flags)
	flags.StringVar(&o.rules, "rules", "", "The `file` with the permissions of controllers in the member, as the rules of a ClusterRole (required)")
	flags.StringVar(&o.access, "access", string(register.AccessAuto), "How controllers connect: auto, oidc or token-secret")
	flags.StringVar(&r.Server, "server", "", "The `URL` of the member for controllers (default that of the member's context)")
	flags.StringVar(&o.authority, "certificate-authority", "", "A `file` with the certificate authority of the member (default that of the member's context)")
	flags.StringVar(&r.SecretNamespace, "secret-namespace", "", "The `namespace` of the hub for the Secret with the token (default that of the profile)")
	flags.StringVar(&r.MemberNamespace, "member-namespace", register.DefaultMemberNamespace, "The `namespace` of the member for the ServiceAccount, created if missing")
	flags.StringToStringVar(&r.Labels, "label", nil, "A label of the profile, such as env=prod, may be repeated")
	flags.DurationVar(&r.TokenLifetime, "token-lifetime", register.DefaultTokenLifetime, "With token-secret: the lifetime of tokens, which the member may shorten")
	flags.StringVar(&o.serviceAccount, "service-account", "", "With oidc: `namespace/name` of the ServiceAccount of the hub whose tokens the member accepts")
	flags.StringVar(&r.Audience, "audience", "", "With oidc: the audience of the member (default its URL)")
	flags.StringVar(&r.UsernamePrefix, "username-prefix", register.DefaultUsernamePrefix, "With oidc: the prefix of the hub's users in the configuration for the member")
	flags.StringVar(&o.trustFile, "authentication-config", "", "With oidc: write the configuration for the member into this `file`, instead of the output")
	flags.BoolVar(&r.Replace, "replace", false, "Allow that the name stood for another cluster before")
	flags.BoolVar(&r.DryRun, "dry-run", false, "Let both clusters validate the changes, and make none")
	o.output.AddFlags(c, text, output.JSON, output.YAML)
	return c
}

// report is the output as JSON or YAML.
type report struct {
	*register.Result
	DryRun bool            `json:"dryRun,omitempty"`
	Trust  *register.Trust `json:"trust,omitempty"`
}

func (o *options) run(ctx context.Context, name string) error {
	format, err := o.output.Format()
	if err != nil {
		return err
	}
	if err := o.complete(name); err != nil {
		return err
	}
	if format == text {
		o.register.OnChange = func(change register.Change) { printChange(o.env, change, o.register.DryRun) }
	}
	result, err := register.Register(ctx, o.register)
	r := report{Result: result, DryRun: o.register.DryRun}
	if errors.Is(err, register.ErrNotTrusted) {
		err = o.explainTrust(ctx, &r, err)
	}
	if err != nil && !r.DryRun && result != nil && len(result.Changes) > 0 {
		err = fmt.Errorf("%w: repeat the command to complete the registration, or unregister it", err)
	}
	o.warn(r)
	switch {
	case result != nil && format != text:
		if printErr := o.output.PrintValue(o.env.Out, r); err == nil {
			err = printErr
		}
	case r.Trust != nil && o.trustFile == "":
		_, _ = fmt.Fprint(o.env.Out, r.Trust.Configuration)
	case err == nil && !r.DryRun:
		_, err = fmt.Fprintf(o.env.Out, "%s/%s is registered, with access by %s\n", result.Namespace, result.Name, result.Access)
	}
	return failure(err)
}

// complete reads the files and the configurations of the clusters.
func (o *options) complete(name string) error {
	r := &o.register
	r.Name, r.Access = name, register.Access(o.access)
	if o.rules == "" {
		return command.Usagef("--rules is required: a file with what controllers may do in the member, see 'mc-credential register --help'")
	}
	data, err := os.ReadFile(o.rules)
	if err != nil {
		return command.Usagef("--rules: %w", err)
	}
	if r.Rules, err = register.ParseRules(data); err != nil {
		return command.Usagef("--rules %s: %w", o.rules, err)
	}
	if o.authority != "" {
		if r.CAData, err = os.ReadFile(o.authority); err != nil {
			return command.Usagef("--certificate-authority: %w", err)
		}
	}
	if o.serviceAccount != "" {
		namespace, account, found := strings.Cut(o.serviceAccount, "/")
		if !found || account == "" {
			return command.Usagef("invalid --service-account %q: must be namespace/name", o.serviceAccount)
		}
		r.ServiceAccount = types.NamespacedName{Namespace: namespace, Name: account}
	}
	if r.Member, err = o.member.config(o.env); err != nil {
		return err
	}
	if r.Hub, err = o.env.HubConfig(); err != nil {
		return err
	}
	r.Namespace, err = o.env.Namespace()
	return err
}

// explainTrust adds what the member needs to the report.
func (o *options) explainTrust(ctx context.Context, r *report, untrusted error) error {
	trust, err := register.AuthenticationConfiguration(ctx, o.register)
	if err != nil {
		return fmt.Errorf("%w, and what it needs is unknown: %w", untrusted, err)
	}
	r.Trust = trust
	if o.trustFile != "" {
		if err := writeFile(o.trustFile, trust.Configuration); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: start its API server with the configuration in %s as --authentication-config, then repeat this command, or use --access=%s",
		untrusted, cmp.Or(o.trustFile, "the output"), register.AccessTokenSecret)
}

// writeFile writes the whole file or nothing.
func writeFile(path, content string) error {
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func (o *options) warn(r report) {
	var warnings []string
	if o.register.Member.Proxy != nil {
		warnings = append(warnings, "the context of the member has a proxy, which the profile does not have: controllers must reach the server without it")
	}
	if r.Result != nil {
		warnings = append(warnings, r.Warnings...)
		if local(r.Server) {
			warnings = append(warnings, fmt.Sprintf("%s is an address of this machine: set --server if controllers run on others", r.Server))
		}
	}
	if r.Trust != nil {
		warnings = append(warnings, r.Trust.Warnings...)
	}
	for _, warning := range warnings {
		_, _ = fmt.Fprintf(o.env.ErrOut, "%s %s\n", o.env.PaintErr(command.Yellow, "warning:"), command.OneLine(warning))
	}
}

// printChange prints an object and what was done with it.
func printChange(env *command.Env, change register.Change, dryRun bool) {
	suffix := ""
	if dryRun {
		suffix = " (dry run)"
	}
	_, _ = fmt.Fprintf(env.Out, "%s %s%s\n", env.Mark(true), command.OneLine(change.String()), suffix)
}

// failure returns the error with its exit code, on one line.
func failure(err error) error {
	if err == nil {
		return nil
	}
	line := errors.New(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
	if errors.Is(err, register.ErrInvalidOptions) {
		return command.Exit(command.ExitUsage, line)
	}
	return line
}
