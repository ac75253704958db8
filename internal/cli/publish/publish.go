// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package publish is the command that writes an inventory into a hub.
package publish

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/inventory/publish"
)

// defaultLease is the name of the Lease, as in config/publish.
const defaultLease = "mc-credential-publish"

type options struct {
	env     *command.Env // of the hub
	from    *command.Env // of the source
	sources sources.Flags
	output  output.Flags

	manager        string
	once, dryRun   bool
	probe          bool
	probeInterval  time.Duration
	leaderElect    bool
	leaseName      string
	leaseNamespace string
	metricsAddress string
	healthAddress  string
}

// New returns the command.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env, from: command.NewEnv(env.Terminal)}
	c := &cobra.Command{
		Use:   "publish --from SOURCE --namespace NAMESPACE",
		Short: "Write an inventory into a hub, as ClusterProfiles",
		Long: `Write the profiles of an inventory into a namespace of a hub, as ClusterProfiles that every consumer can read, and keep them up to date until interrupted: clusters are probed, and profiles are removed when the inventory no longer lists their cluster.

--kubeconfig, --context and --namespace are those of the hub. An inventory in a cluster (Secrets with kubeconfigs, Cluster API, ClusterProfiles) is read with the same kubeconfig and context, unless --from-kubeconfig or --from-context is set.

Only profiles of --manager that this command has written are changed or removed. Two inventories of the same kind need different names to be published in one namespace.`,
		Example: `  # See what would be done with the clusters of kind on this machine
  mc-credential publish --from kind --namespace fleet --dry-run

  # Keep the profiles of Cluster API's clusters in another cluster
  mc-credential publish --from cluster-api --from-context management --context hub --namespace fleet

  # The contexts of a kubeconfig file, once
  mc-credential publish --from file --file clusters.kubeconfig --namespace fleet --once`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	o.sources.AddFlags(c)
	o.output.AddFlags(c, output.Table, output.JSON, output.YAML)
	flags := c.Flags()
	flags.Lookup("from").Usage += ". Required"
	flags.Lookup("from").DefValue = ""
	flags.Lookup("output").Usage += ", with --once or --dry-run"
	o.addSourceFlags(flags)
	flags.StringVar(&o.manager, "manager", "", "The cluster manager's name in the profiles (default the value of --from)")
	flags.BoolVar(&o.once, "once", false, "Publish once, print the results and exit")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Print what --once would do, and change nothing")
	flags.BoolVar(&o.probe, "probe", true, "Probe the clusters for their health, version and ID")
	flags.DurationVar(&o.probeInterval, "probe-interval", 30*time.Second, "The time between two probes of a cluster")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "Publish only while this process is the leader of its replicas")
	flags.StringVar(&o.leaseName, "lease-name", defaultLease, "With --leader-elect: the name of the Lease in the hub")
	flags.StringVar(&o.leaseNamespace, "lease-namespace", "", "With --leader-elect: the namespace of the Lease (default that of the profiles)")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "0", "The address of the metrics, such as :8080; 0 for none")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", "0", "The address of /healthz, such as :8081; 0 for none")
	return c
}

// addSourceFlags adds flags for the cluster of the source.
func (o *options) addSourceFlags(flags *pflag.FlagSet) {
	of := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.from.AddFlags(of)
	for _, name := range []string{"kubeconfig", "context", "namespace"} {
		usage := strings.NewReplacer("for the hub", "for the inventory", "of the hub", "of the inventory").Replace(of.Lookup(name).Usage)
		if name != "namespace" {
			usage, _, _ = strings.Cut(usage, " (default")
			usage += " (default that of the hub)"
		}
		flags.VarPF(of.Lookup(name).Value, "from-"+name, "", usage)
	}
}

func (o *options) run(c *cobra.Command) error {
	flags := c.Flags()
	once := o.once || o.dryRun
	switch {
	case !flags.Changed("from"):
		return command.Usagef("--from is required: what to publish")
	case !flags.Changed("namespace"):
		return command.Usagef("--namespace is required: where to publish")
	case once && o.leaderElect:
		return command.Usagef("--leader-elect does not go with --once and --dry-run")
	case !once && flags.Changed("output"):
		return command.Usagef("--output needs --once or --dry-run")
	case o.probeInterval <= 0:
		return command.Usagef("--probe-interval must be positive")
	}
	format, err := o.output.Format()
	if err != nil {
		return err
	}
	if !flags.Changed("from-kubeconfig") && !flags.Changed("from-context") {
		for _, name := range []string{"kubeconfig", "context"} {
			if err := flags.Set("from-"+name, flags.Lookup(name).Value.String()); err != nil {
				return err
			}
		}
	}
	ctx := c.Context()
	if !once {
		// The log is all that it prints.
		ctx = log.IntoContext(ctx, o.logger())
	}
	hub, err := o.env.HubConfig()
	if err != nil {
		return err
	}
	namespace, err := o.env.Namespace()
	if err != nil {
		return err
	}
	opened, err := o.sources.Open(ctx, o.from)
	if err != nil {
		return err
	}
	defer opened.Close()
	if o.sources.From == sources.Hub && opened.HubConfig.Host == hub.Host && (opened.Namespace == namespace || opened.Namespace == "") {
		return command.Usagef("the namespace %s of %s would be published into itself: set --from-context or --from-namespace", namespace, hub.Host)
	}
	settings := publish.Options{
		Hub: hub, Source: opened.Source, Namespace: namespace,
		ManagerName: cmp.Or(o.manager, o.sources.From), ProbeInterval: o.probeInterval,
	}
	if o.probe {
		method, err := opened.Credentials()
		if err != nil {
			return fmt.Errorf("%w, or set --probe=false", err)
		}
		p := newProber(method, 4*o.probeInterval)
		defer p.close()
		settings.Probe = p.probe
	}
	publisher, err := publish.New(settings)
	if err != nil {
		return command.Usagef("%w", err)
	}
	if once {
		return o.publishOnce(ctx, publisher, format)
	}
	return o.serve(ctx, hub, namespace, publisher)
}

func (o *options) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		_, _ = fmt.Fprintln(o.env.ErrOut, strings.TrimSpace(prefix+" "+args))
	}, funcr.Options{LogTimestamp: true})
}

// serve publishes until the context ends.
func (o *options) serve(ctx context.Context, hub *rest.Config, namespace string, publisher *publish.Publisher) error {
	mgr, err := ctrl.NewManager(hub, ctrl.Options{
		Logger:         log.FromContext(ctx),
		LeaderElection: o.leaderElect, LeaderElectionID: o.leaseName,
		LeaderElectionNamespace:       cmp.Or(o.leaseNamespace, namespace),
		LeaderElectionReleaseOnCancel: true, // the manager waits for the publisher
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.healthAddress,
	})
	if err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	logger := log.FromContext(ctx)
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return publisher.Run(log.IntoContext(ctx, logger))
	})); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// publishTime is how long --once may take after the inventory was listed.
const publishTime = 2 * time.Minute

// result is what is printed of a profile.
type result struct {
	Name    string          `json:"name"`
	Cluster string          `json:"cluster"`
	Result  publish.Outcome `json:"result"`
	Message string          `json:"message,omitempty"`
}

func (o *options) publishOnce(ctx context.Context, publisher *publish.Publisher, format output.Format) error {
	ctx, cancel := context.WithTimeout(ctx, o.sources.ListTimeout+publishTime)
	defer cancel()
	run := publisher.Once
	if o.dryRun {
		run = publisher.DryRun
	}
	statuses, err := run(ctx)
	if err != nil {
		return err
	}
	results, failed := make([]result, 0, len(statuses)), 0
	for _, s := range statuses {
		results = append(results, result{Name: s.Name, Cluster: s.ClusterName, Result: s.Outcome, Message: s.Message})
		if s.Outcome == publish.Refused || s.Outcome == publish.Failed {
			failed++
		}
	}
	if err := o.print(results, format); err != nil {
		return err
	}
	if failed > 0 {
		return command.Exit(command.ExitFailed, fmt.Errorf("%d of %d profiles not published", failed, len(results)))
	}
	return nil
}

func (o *options) print(results []result, format output.Format) error {
	if format != output.Table {
		return o.output.PrintValue(o.env.Out, results)
	}
	if len(results) == 0 {
		_, err := fmt.Fprintln(o.env.ErrOut, "No profiles to publish or to remove.")
		return err
	}
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Cluster"}, {Name: "Result"}, {Name: "Message"}}}
	for _, r := range results {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{r.Name, r.Cluster, o.paint(r.Result), cmp.Or(r.Message, "-")}})
	}
	return o.output.PrintTable(o.env.Out, table)
}

func (o *options) paint(outcome publish.Outcome) any {
	switch outcome {
	case publish.Created, publish.Updated, publish.Removed:
		return o.env.Cell(command.Green, string(outcome))
	case publish.Refused, publish.Failed:
		return o.env.Cell(command.Red, string(outcome))
	}
	return string(outcome)
}
