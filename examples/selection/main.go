// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Selection reconciles some clusters of a hub: those with given properties, or those that
// a scheduler has selected with PlacementDecisions. It prints which ones it selects.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

func main() {
	if err := run(); err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func run() error {
	var credentialOptions credentials.Options
	credentialOptions.AddFlags(flag.CommandLine)
	options := clusterinventoryapi.Options{}
	flag.Func("property", "`name=value` of a property that clusters must have; may be repeated", func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("must be name=value")
		}
		options.Selection.Properties = append(options.Selection.Properties,
			inventory.PropertyExpression{Name: name, Operator: inventory.PropertyIn, Values: []string{value}})
		return nil
	})
	flag.Func("placement", "`namespace/key` of the PlacementDecisions that select clusters", func(text string) error {
		namespace, key, ok := strings.Cut(text, "/")
		if !ok {
			return errors.New("must be namespace/key")
		}
		options.Placement = &hub.Placement{Namespace: namespace, DecisionKey: key}
		return options.Placement.Validate()
	})
	flag.Parse()
	ctrl.SetLogger(zap.New())
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case credentialOptions.ProviderFile == "":
		return errors.New("--clusterprofile-provider-file must be given")
	}
	resolver, err := credentials.New(credentialOptions)
	if err != nil {
		return err
	}
	defer resolver.Close()
	options.Credentials = resolver
	mgr, err := newManager(ctrl.GetConfigOrDie(), options, os.Stdout, mcmanager.Options{})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// newManager returns a manager that writes a line for each cluster that is selected, and for
// each that no longer is.
func newManager(local *rest.Config, of clusterinventoryapi.Options, out io.Writer, options mcmanager.Options) (mcmanager.Manager, error) {
	provider, err := clusterinventoryapi.New(of)
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.New(local, provider, options)
	if err != nil {
		return nil, err
	}
	return mgr, mcbuilder.ControllerManagedBy(mgr).Named("selection").
		WatchesRawSource(mcsource.TypedClusterLifecycle(func(_ context.Context, e mcsource.ClusterEvent) []mcreconcile.Request {
			if e.Type == mcsource.ClusterDisengaged {
				fmt.Fprintf(out, "Cluster %q is no longer selected\n", e.ClusterName)
				return nil
			}
			return []mcreconcile.Request{{ClusterName: e.ClusterName}}
		})).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			if _, err := mgr.GetCluster(ctx, req.ClusterName); err != nil {
				return ctrl.Result{}, err
			}
			fmt.Fprintf(out, "Cluster %q is selected\n", req.ClusterName)
			return ctrl.Result{}, nil
		}))
}
