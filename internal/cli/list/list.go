// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package list is the command that prints the profiles of an inventory.
package list

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

type options struct {
	env     *command.Env
	sources sources.Flags
	output  output.Flags
	watch   bool
}

// New returns the command.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "list [PROFILE...]",
		Short: "Print the profiles of an inventory",
		Long: `Print the profiles of an inventory: their ClusterSet, member ID, Kubernetes version, health, access providers and age.

The inventory is the ClusterProfiles of a hub, or what a provider finds in kubeconfig files, Secrets, kind or Cluster API.`,
		Example: `  # The profiles in the namespace fleet of the hub
  mc-credential list -n fleet

  # Those of production that are published in any namespace, with more columns
  mc-credential list -A -l env=prod -o wide

  # The contexts of a kubeconfig file, as profiles
  mc-credential list --from file --file clusters.kubeconfig -o yaml`,
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	o.sources.AddFlags(c)
	o.output.AddFlags(c, output.Table, output.Wide, output.JSON, output.YAML, output.Name)
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print each profile again when it changes, until interrupted")
	return c
}

func (o *options) run(ctx context.Context, names []string) error {
	format, err := o.output.Format()
	if err != nil {
		return err
	}
	opened, err := o.sources.Open(ctx, o.env)
	if err != nil {
		return err
	}
	defer opened.Close()
	if o.watch {
		return o.follow(ctx, opened, names, format)
	}
	profiles, err := opened.Find(ctx, names...)
	if err != nil {
		return err
	}
	if format == output.Table || format == output.Wide {
		if len(profiles) == 0 {
			_, err := fmt.Fprintf(o.env.ErrOut, "No profiles found%s.\n", in(opened))
			return err
		}
		return o.output.PrintTable(o.env.Out, o.table(profiles...))
	}
	return o.printObjects(profiles, format)
}

// printObjects prints a list, as kubectl does.
func (o *options) printObjects(profiles []*inventory.Profile, format output.Format) error {
	if format == output.Name {
		for _, profile := range profiles {
			if err := o.output.PrintObject(o.env.Out, sources.Typed(profile)); err != nil {
				return err
			}
		}
		return nil
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, profile := range profiles {
		list.Items = append(list.Items, runtime.RawExtension{Object: sources.Typed(profile)})
	}
	return o.output.PrintObject(o.env.Out, list)
}

// follow prints profiles as they change.
func (o *options) follow(ctx context.Context, opened *sources.Inventory, names []string, format output.Format) error {
	f := &follower{options: o, names: names, format: format, printTable: o.output.TablePrinter(o.env.Out), failed: make(chan error, 1)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-f.failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	err := inventory.Restart(opened.Source).Run(ctx, f)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// follower prints each profile that it gets.
type follower struct {
	*options
	names      []string
	format     output.Format
	printTable func(table *metav1.Table) error
	failed     chan error
}

func (f *follower) Put(profile *inventory.Profile) {
	if len(f.names) > 0 {
		if _, err := sources.Match([]*inventory.Profile{profile}, f.names...); err != nil {
			return
		}
	}
	var err error
	if f.format == output.Table || f.format == output.Wide {
		err = f.printTable(f.table(profile))
	} else {
		err = f.output.PrintObject(f.env.Out, sources.Typed(profile))
	}
	if err != nil {
		select {
		case f.failed <- err:
		default:
		}
	}
}

func (f *follower) Remove(inventory.Key) {}

func (f *follower) Synced() {}

func in(opened *sources.Inventory) string {
	if opened.Namespace == "" {
		return ""
	}
	return " in namespace " + opened.Namespace
}
