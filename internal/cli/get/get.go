// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package get is the command that prints objects of all clusters in one table.
package get

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

type options struct {
	env     *command.Env
	sources sources.Flags
	output  output.Flags
	query   query

	profiles []string
	watch    bool
	timeout  time.Duration
}

// New returns the command.
func New(env *command.Env) *cobra.Command {
	o := &options{env: env}
	c := &cobra.Command{
		Use:   "get KIND [NAME]",
		Short: "Print objects of all clusters in one table",
		Long: `Print objects of all clusters in one table, with the column CLUSTER. Clusters that fail are printed at the end, and the exit code is 1.

Unlike in other commands, -n, -A and -l are about the objects, as in kubectl.`,
		Example: `  # The Pods of kube-system in every cluster of the hub's namespace fleet
  mc-credential get pods -n kube-system --hub-namespace fleet

  # Deployments with a label in two clusters, in all namespaces
  mc-credential get deploy -A -l app=web --profile fleet/eu,fleet/us

  # Which clusters have a CRD
  mc-credential get crd certificates.cert-manager.io`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.StringVarP(&o.query.namespace, "namespace", "n", metav1.NamespaceDefault, "The `namespace` of the objects in each cluster")
	flags.BoolVarP(&o.query.allNamespaces, "all-namespaces", "A", false, "Objects of all namespaces")
	flags.StringVarP(&o.query.labels, "selector", "l", "", "Label selector of objects")
	flags.StringVar(&o.query.fields, "field-selector", "", "Field selector of objects")
	flags.BoolVarP(&o.watch, "watch", "w", false, "After the table, print objects that change, until interrupted")
	flags.DurationVar(&o.timeout, "timeout", 15*time.Second, "How long each cluster may take to list its objects")
	flags.StringSliceVar(&o.profiles, "profile", nil, "A profile, may be repeated (default all)")
	o.sources.AddProfileFlags(c)
	o.output.AddFlags(c, output.Table, output.Wide, output.JSON, output.YAML, output.Name)
	return c
}

func (o *options) run(ctx context.Context, args []string) error {
	format, err := o.output.Format()
	if err != nil {
		return err
	}
	if err := o.complete(args, format); err != nil {
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
	profiles, err := opened.Find(ctx, o.profiles...)
	if err != nil {
		return err
	}
	results := o.getAll(ctx, method, profiles)
	defer release(results)
	if err := o.print(results, format); err != nil {
		return err
	}
	if o.watch && ctx.Err() == nil {
		return o.follow(ctx, results)
	}
	return o.reportFailures(results)
}

func (o *options) complete(args []string, format output.Format) error {
	q := &o.query
	q.kind = args[0]
	if strings.ContainsAny(q.kind, ",/") {
		return command.Usagef("invalid kind %q: name one kind, and the object as the next argument", q.kind)
	}
	if len(args) > 1 {
		q.name = args[1]
		if q.labels != "" || q.fields != "" {
			return command.Usagef("--selector and --field-selector do not go with the name of an object")
		}
		if q.allNamespaces {
			return command.Usagef("--all-namespaces does not go with the name of an object: use --field-selector metadata.name=%s", q.name)
		}
	}
	if _, err := labels.Parse(q.labels); err != nil {
		return command.Usagef("invalid --selector: %v", err)
	}
	if _, err := fields.ParseSelector(q.fields); err != nil {
		return command.Usagef("invalid --field-selector: %v", err)
	}
	q.asTable = format == output.Table || format == output.Wide
	if o.watch && !q.asTable {
		return command.Usagef("--watch prints a table: it does not go with --output=%s", format)
	}
	return nil
}

// result is what one cluster returned.
type result struct {
	name     string // of the cluster
	profile  *inventory.Profile
	method   credentials.Method
	access   *credentials.Access
	resource *resource

	table   *metav1.Table
	objects []unstructured.Unstructured
	version string // resource version to watch from
	err     error
}

// getAll asks all clusters at once: none waits for another.
func (o *options) getAll(ctx context.Context, method credentials.Method, profiles []*inventory.Profile) []*result {
	progress := o.env.Progress("Reading clusters", len(profiles))
	defer progress.End()
	results := make([]*result, len(profiles))
	var group sync.WaitGroup
	for i, profile := range profiles {
		group.Go(func() {
			defer progress.Done()
			results[i] = &result{name: inventory.ClusterName(profile), profile: profile, method: method}
			results[i].err = o.read(ctx, results[i])
		})
	}
	group.Wait()
	return results
}

// read connects to the cluster, unless that was done, and lists its objects.
func (o *options) read(ctx context.Context, r *result) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("no response within %s", o.timeout))
	defer cancel()
	defer func() {
		if err != nil && context.Cause(ctx) != nil {
			err = context.Cause(ctx)
		}
	}()
	// Not all transports end with the context: that of a plugin which client-go runs waits
	// for the plugin.
	work, done := *r, make(chan struct{})
	var readErr error // valid once done is closed
	go func() {
		defer close(done)
		readErr = o.query.read(ctx, &work)
	}()
	select {
	case <-done:
		*r = work
		return readErr
	case <-ctx.Done():
	}
	before := r.access
	go func() {
		<-done
		if before == nil && work.access != nil {
			work.access.Release()
		}
	}()
	return ctx.Err()
}

func (q *query) read(ctx context.Context, r *result) (err error) {
	if r.access == nil {
		if r.access, err = r.method.Resolve(ctx, r.profile); err != nil {
			return err
		}
	}
	if r.resource == nil {
		if r.resource, err = q.find(ctx, r.access.RESTConfig()); err != nil {
			return err
		}
	}
	return r.resource.list(ctx, r)
}

func release(results []*result) {
	for _, r := range results {
		if r.access != nil {
			r.access.Release()
		}
	}
}

func (o *options) print(results []*result, format output.Format) error {
	if o.query.asTable {
		merged := merge(results, o.query.allNamespaces)
		if len(merged.Rows) == 0 {
			if !o.watch && !slices.ContainsFunc(results, func(r *result) bool { return r.err != nil }) {
				_, _ = fmt.Fprintln(o.env.ErrOut, "No objects found.")
			}
			return nil
		}
		return o.output.PrintTable(o.env.Out, merged)
	}
	all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}}
	for _, r := range results {
		for _, object := range r.objects {
			annotations := object.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[inventory.AnnotationClusterName] = r.name
			object.SetAnnotations(annotations)
			all.Items = append(all.Items, object)
		}
	}
	if format != output.Name {
		return o.output.PrintObject(o.env.Out, all)
	}
	for i := range all.Items {
		object := &all.Items[i]
		if _, err := fmt.Fprintf(o.env.Out, "%s ", command.OneLine(object.GetAnnotations()[inventory.AnnotationClusterName])); err != nil {
			return err
		}
		if err := o.output.PrintObject(o.env.Out, object); err != nil {
			return err
		}
	}
	return nil
}

// describe returns the error on one line. The text is the cluster's, which may repeat a
// credential that it was sent.
func describe(err error) string { return command.OneLine(credentials.Redact(err.Error())) }

// reportFailures prints the clusters that failed.
func (o *options) reportFailures(results []*result) error {
	failed := 0
	for _, r := range results {
		if r.err == nil {
			continue
		}
		failed++
		_, _ = fmt.Fprintf(o.env.ErrOut, "%s %s: %s\n", o.env.PaintErr(command.Red, "✗"), command.OneLine(r.name), describe(r.err))
	}
	if failed > 0 {
		return command.Exit(command.ExitFailed, fmt.Errorf("%d of %d clusters failed", failed, len(results)))
	}
	return nil
}
