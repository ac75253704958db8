// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig is the command that writes a kubeconfig for the clusters of an
// inventory, whose users run get-token.
package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

type options struct {
	env     *command.Env
	sources sources.Flags
	output  output.Flags

	all     bool
	prefix  string
	merge   string
	remove  bool
	kuberc  bool
	command string
}

// New returns the command.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "kubeconfig {PROFILE... | --all}",
		Short: "Print or merge a kubeconfig for the clusters of an inventory",
		Long: `Print a kubeconfig with one context for each profile, named as its cluster, for kubectl, k9s, helm and others. It contains no credential: its users run 'mc-credential get-token'.

With --merge, the contexts are added to a file, or updated there. Other entries of the file are not changed; if one has the same name, nothing is written. With --all, contexts of the same inventory whose profile has gone or is no longer selected are removed. The namespace of a context is kept.`,
		Example: `  # Use one cluster
  mc-credential kubeconfig east -n fleet > east.kubeconfig
  kubectl --kubeconfig east.kubeconfig get nodes

  # Add all clusters to your kubeconfig; run it again after clusters were added or removed
  mc-credential kubeconfig --all -n fleet --merge ~/.kube/config
  kubectl --context fleet/east get nodes

  # Remove them
  mc-credential kubeconfig --remove --merge ~/.kube/config

  # If your kuberc has an allowlist of credential plugins
  mc-credential kubeconfig --kuberc`,
		RunE: func(c *cobra.Command, args []string) error {
			err := o.run(c.Context(), args)
			if err != nil && c.Context().Err() != nil {
				return errors.New("interrupted, nothing was written")
			}
			return err
		},
	}
	o.sources.AddFlags(c)
	o.output.AddFlags(c, output.YAML, output.JSON)
	flags := c.Flags()
	flags.BoolVar(&o.all, "all", false, "All profiles that the flags select")
	flags.StringVar(&o.prefix, "prefix", "", "The `text` before the names of contexts, clusters and users")
	flags.StringVar(&o.merge, "merge", "", "The kubeconfig `file` to change, instead of printing one; created if missing")
	flags.BoolVar(&o.remove, "remove", false, "With --merge: remove the contexts of these names, or all that this command has added")
	flags.BoolVar(&o.kuberc, "kuberc", false, "Print the kuberc (kubectl 1.36 or later) that allows kubectl to run this program, and no other credential plugin")
	flags.StringVar(&o.command, "command", "", "The `program` in the kubeconfig, a path or a name in PATH (default the path of this one)")
	return c
}

func (o *options) run(ctx context.Context, names []string) error {
	if err := o.complete(names); err != nil {
		return err
	}
	switch {
	case o.kuberc:
		return o.printKuberc()
	case o.remove:
		return o.removeFrom(ctx, names)
	}
	wanted, err := o.read(ctx, names)
	if err != nil {
		return err
	}
	if o.merge == "" {
		f := &file{}
		if err := f.merge(wanted, nil); err != nil {
			return err
		}
		data, err := f.encode()
		if err != nil {
			return err
		}
		if err := o.print(data); err != nil {
			return err
		}
	} else if err := o.mergeInto(ctx, wanted); err != nil {
		return err
	}
	if len(wanted.failed) > 0 {
		return command.Exit(command.ExitFailed, nil) // printed already
	}
	return nil
}

// print prints YAML in the chosen format.
func (o *options) print(data []byte) error {
	if format, _ := o.output.Format(); format == output.JSON {
		var value any
		if err := yaml.Unmarshal(data, &value); err != nil {
			return err
		}
		return o.output.PrintValue(o.env.Out, value)
	}
	_, err := o.env.Out.Write(data)
	return err
}

func (o *options) complete(names []string) error {
	format, err := o.output.Format()
	switch {
	case err != nil:
		return err
	case format == output.JSON && o.merge != "":
		return command.Usagef("--output=json does not go with --merge, which writes YAML")
	case o.kuberc && (len(names) > 0 || o.all || o.remove || o.merge != ""):
		return command.Usagef("--kuberc goes with --command only")
	case o.all && o.remove:
		return command.Usagef("--all and --remove exclude each other: --remove without names removes all that was added")
	case o.remove && o.merge == "":
		return command.Usagef("--remove needs --merge with the kubeconfig file")
	case o.all && len(names) > 0:
		return command.Usagef("--all and the names of profiles exclude each other")
	case !o.all && !o.remove && !o.kuberc && len(names) == 0:
		return command.Usagef("name profiles, or set --all: see 'mc-credential list'")
	case o.remove || o.kuberc:
		return o.findCommand()
	}
	return o.findProgram()
}

// findProgram checks that kubectl can run this program with the same flags, and sets its
// path.
func (o *options) findProgram() error {
	if !o.sources.HasPaths() {
		return command.Usagef("--from=%s needs --file or --dir here, as kubectl may run in any folder", sources.File)
	}
	return o.findCommand()
}

// findCommand sets the path of this program, unless it is given.
func (o *options) findCommand() error {
	if o.command != "" {
		return nil
	}
	// Not os.Executable, which names the target of a link that upgrades change.
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return fmt.Errorf("path of this program: %w: set --command", err)
	}
	o.command = path
	return nil
}

// read returns the contexts for the profiles of these names, or all.
func (o *options) read(ctx context.Context, names []string) (*contexts, error) {
	args, err := o.sources.Args(o.env)
	if err != nil {
		return nil, err
	}
	opened, err := o.sources.Open(ctx, o.env)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	profiles, err := opened.Find(ctx, names...)
	if err != nil {
		return nil, err
	}
	method, err := opened.Credentials()
	if err != nil {
		return nil, err
	}
	wanted := &contexts{inventory: inventoryOf(args, opened), all: o.all, failed: map[string]bool{}}
	for _, profile := range profiles {
		added, err := o.context(ctx, profile, method, args)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && !o.all:
			return nil, err
		case err != nil:
			wanted.failed[inventory.KeyOf(profile).String()] = true
			_, _ = fmt.Fprintf(o.env.ErrOut, "%s %s\n", o.env.PaintErr(command.Red, "✗"), command.OneLine(err.Error()))
			continue
		}
		if err := wanted.add(added); err != nil {
			return nil, err
		}
	}
	if len(wanted.list) == 0 && o.merge == "" {
		return nil, errors.New("no profile has an access provider that can be used: see 'mc-credential list'")
	}
	return wanted, nil
}
