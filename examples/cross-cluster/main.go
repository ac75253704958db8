// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Cross-cluster copies the ConfigMaps of one cluster that are labelled
// example.rollcall.dev/share=true to all other clusters that have a ClusterProfile
// in a hub.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
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
	from := flag.String("from", "", "`namespace/name` of the profile of the cluster to copy from")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case credentialOptions.ProviderFile == "":
		return errors.New("--clusterprofile-provider-file must be given")
	case *from == "":
		return errors.New("--from must be given")
	}
	ctx := ctrl.SetupSignalHandler()

	resolver, err := credentials.New(credentialOptions)
	if err != nil {
		return err
	}
	defer resolver.Close()
	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{Credentials: resolver})
	if err != nil {
		return err
	}
	mgr, err := mcmanager.New(ctrl.GetConfigOrDie(), provider, mcmanager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := setup(mgr, multicluster.ClusterName(*from)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
