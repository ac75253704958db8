// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
)

type unregisterOptions struct {
	env        *command.Env
	member     member
	output     output.Flags
	unregister register.UnregisterOptions
}

// NewUnregister returns the command unregister.
func NewUnregister(env *command.Env) *cobra.Command {
	o := &unregisterOptions{env: env}
	c := &cobra.Command{
		Use:   "unregister NAME",
		Short: "Remove a registered cluster from a hub",
		Long: `Remove what 'mc-credential register' has created, and nothing else: the ClusterProfile, the Secret, and the objects in the member, by which all tokens are revoked.

If the member does not respond, nothing is changed. For a member that does not exist any more, use --skip-member.`,
		Example: `  # Remove the cluster of the context east
  mc-credential unregister east -n fleet --member-context east

  # Remove a cluster that does not exist any more
  mc-credential unregister east -n fleet --skip-member`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	o.member.addFlags(flags)
	flags.BoolVar(&o.unregister.SkipMember, "skip-member", false, "Remove only what is in the hub")
	flags.StringVar(&o.unregister.SecretNamespace, "secret-namespace", "", "The `namespace` of the Secret, if the profile does not exist any more (default that of the profile)")
	flags.BoolVar(&o.unregister.DryRun, "dry-run", false, "Print what would be removed, and remove nothing")
	o.output.AddFlags(c, text, output.JSON, output.YAML)
	return c
}

func (o *unregisterOptions) run(ctx context.Context, name string) error {
	format, err := o.output.Format()
	if err != nil {
		return err
	}
	u := &o.unregister
	u.Name = name
	switch {
	case u.SkipMember && o.member.given():
		return command.Usagef("--skip-member does not go with --member-context and --member-kubeconfig")
	case !u.SkipMember && !o.member.given():
		return command.Usagef("the member is required: set --member-context or --member-kubeconfig, or --skip-member if it does not exist any more")
	case !u.SkipMember:
		if u.Member, err = o.member.config(o.env); err != nil {
			return err
		}
	}
	if u.Hub, err = o.env.HubConfig(); err != nil {
		return err
	}
	if u.Namespace, err = o.env.Namespace(); err != nil {
		return err
	}
	if format == text {
		u.OnChange = func(change register.Change) { printChange(o.env, change, u.DryRun) }
	}
	result, err := register.Unregister(ctx, *u)
	switch {
	case errors.Is(err, register.ErrUnreachable):
		err = fmt.Errorf("%w: nothing was removed, use --skip-member if it does not exist any more", err)
	case err != nil && result != nil && len(result.Left) > 0:
		err = fmt.Errorf("%w: repeat the command to remove what is left: %s", err, strings.Join(result.Left, ", "))
	case err == nil && format == text:
		for _, left := range result.Left {
			_, _ = fmt.Fprintf(o.env.ErrOut, "%s not removed: %s\n", o.env.PaintErr(command.Yellow, "warning:"), command.OneLine(fmt.Sprint(left)))
		}
	}
	if result != nil && format != text {
		if printErr := o.output.PrintValue(o.env.Out, result); err == nil {
			err = printErr
		}
	}
	return failure(err)
}
