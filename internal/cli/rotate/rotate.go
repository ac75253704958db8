// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package rotate is the command that renews the tokens of registered clusters.
package rotate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
)

type options struct {
	env    *command.Env
	output output.Flags
	rotate register.RotateOptions

	all, manifest bool
	olderThan     time.Duration
	cronJob       register.CronJobOptions
}

// New returns the command.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "rotate {NAME... | --all}",
		Short: "Renew the tokens of registered clusters",
		Long: `Renew the tokens that 'mc-credential register' has stored in Secrets of the hub. Each token requests the next one from its cluster, so that this needs no other credential than that for the hub.

Tokens are renewed when less than a third of their lifetime is left. The one before stays valid until it expires. The failure of one cluster does not affect others.

With --manifest, nothing is renewed: the output is the manifest of a CronJob in the hub that does.`,
		Example: `  # Renew what is due in the inventory in the namespace fleet
  mc-credential rotate --all -n fleet

  # Renew a token now
  mc-credential rotate east -n fleet --older-than 0s

  # Let a CronJob in the hub do it
  mc-credential rotate --all -n fleet --manifest --image registry.example.com/mc-credential:v1 | kubectl apply -f -`,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("older-than") {
				o.rotate.OlderThan = &o.olderThan
			}
			return o.run(c.Context(), args)
		},
	}
	flags := c.Flags()
	flags.BoolVar(&o.all, "all", false, "All registered clusters of the namespace")
	flags.StringVar(&o.rotate.SecretNamespace, "secret-namespace", "", "The `namespace` of the hub with the Secrets (default that of the profiles)")
	flags.DurationVar(&o.olderThan, "older-than", 0, "Renew tokens that were issued longer ago, 0s for all (default those with less than a third of their lifetime left)")
	flags.IntVar(&o.rotate.Parallel, "parallel", 10, "How many clusters are worked on at the same time")
	flags.DurationVar(&o.rotate.Timeout, "timeout", 30*time.Second, "How long one cluster may take")
	flags.BoolVar(&o.rotate.DryRun, "dry-run", false, "Print which tokens would be renewed, and renew none")
	flags.BoolVar(&o.manifest, "manifest", false, "Print the manifest of a CronJob instead")
	flags.StringVar(&o.cronJob.Image, "image", "", "With --manifest: the `image` with this program in its PATH (required)")
	flags.StringVar(&o.cronJob.Schedule, "schedule", register.DefaultSchedule, "With --manifest: the schedule of the CronJob")
	flags.StringVar(&o.cronJob.Name, "manifest-name", register.DefaultCronJobName, "With --manifest: the name of its objects")
	o.output.AddFlags(c, output.Table, output.JSON, output.YAML)
	return c
}

func (o *options) run(ctx context.Context, names []string) error {
	format, err := o.output.Format()
	switch {
	case err != nil:
		return err
	case o.all == (len(names) > 0):
		return command.Usagef("set either names or --all")
	case o.rotate.Parallel < 1:
		return command.Usagef("invalid --parallel %d: must be at least 1", o.rotate.Parallel)
	case o.rotate.Timeout <= 0:
		return command.Usagef("invalid --timeout %s: must be positive", o.rotate.Timeout)
	case o.olderThan < 0:
		return command.Usagef("invalid --older-than %s: must not be negative", o.olderThan)
	case o.cronJob.Image != "" && !o.manifest:
		return command.Usagef("--image needs --manifest")
	}
	if o.rotate.Namespace, err = o.env.Namespace(); err != nil {
		return err
	}
	o.rotate.Names = names
	if o.manifest {
		return o.printManifest(format)
	}
	if o.rotate.Hub, err = o.env.HubConfig(); err != nil {
		return err
	}
	results, err := register.Rotate(ctx, o.rotate)
	if err != nil {
		return usage(err)
	}
	if err := o.print(results, format); err != nil {
		return err
	}
	failed := 0
	for _, result := range results {
		if result.Rotation == register.Failed {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tokens were not renewed: see the errors above", failed, len(results))
	}
	return nil
}

func (o *options) print(results []register.Rotated, format output.Format) error {
	if format != output.Table {
		return o.output.PrintValue(o.env.Out, map[string]any{"dryRun": o.rotate.DryRun, "results": append([]register.Rotated{}, results...)})
	}
	if len(results) == 0 {
		_, err := fmt.Fprintf(o.env.ErrOut, "No tokens found for namespace %s.\n", o.rotate.Namespace)
		return err
	}
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Result"}, {Name: "Expires-In"}, {Name: "Error"}}}
	for _, result := range results {
		expires := "-"
		if result.Expires != nil {
			expires = duration.HumanDuration(time.Until(result.Expires.Time))
		}
		text, color := string(result.Rotation), command.Green
		if result.Rotation == register.Failed {
			color = command.Red
		}
		if o.rotate.DryRun && result.Rotation == register.Renewed {
			text = "due"
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{result.Name, o.env.Paint(color, text), expires, result.Error}})
	}
	return o.output.PrintTable(o.env.Out, table)
}

// printManifest prints the objects of a CronJob, as YAML unless JSON is chosen.
func (o *options) printManifest(format output.Format) error {
	o.cronJob.Namespace, o.cronJob.SecretNamespace, o.cronJob.Names = o.rotate.Namespace, o.rotate.SecretNamespace, o.rotate.Names
	objects, err := register.CronJob(o.cronJob)
	if err != nil {
		return usage(err)
	}
	if format == output.JSON {
		list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
		for _, object := range objects {
			list.Items = append(list.Items, runtime.RawExtension{Object: object})
		}
		return o.output.PrintValue(o.env.Out, list)
	}
	for i, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		if i > 0 {
			document = append([]byte("---\n"), document...)
		}
		if _, err := o.env.Out.Write(document); err != nil {
			return err
		}
	}
	return nil
}

// usage makes wrong options a usage error.
func usage(err error) error {
	if errors.Is(err, register.ErrInvalidOptions) {
		return command.Exit(command.ExitUsage, err)
	}
	return err
}
