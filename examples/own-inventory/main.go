// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Own-inventory reconciles the clusters that an HTTP service lists, without a hub.
// A provider has three parts: a source (source.go), a credential method (here a
// provider file, as for any other inventory) and options.
//
//	own-inventory --inventory https://clusters.example.com/v1/clusters \
//	  --clusterprofile-provider-file providers.json
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
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
	url := flag.String("inventory", "", "`URL` of the service that lists the clusters")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case credentialOptions.ProviderFile == "":
		return errors.New("--clusterprofile-provider-file must be given")
	case *url == "":
		return errors.New("--inventory must be given")
	}
	resolver, err := credentials.New(credentialOptions)
	if err != nil {
		return err
	}
	defer resolver.Close()
	source := &service{url: *url, every: time.Minute, client: http.DefaultClient}
	mgr, err := newManager(ctrl.GetConfigOrDie(), source, resolver, mcmanager.Options{})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// newManager returns a manager that logs each namespace of each cluster, with the
// region of the cluster in the inventory.
func newManager(config *rest.Config, source inventory.Source, method credentials.Method, options mcmanager.Options) (mcmanager.Manager, error) {
	provider, err := fleet.New(fleet.Options{Source: source, Credentials: method})
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.New(config, provider, options)
	if err != nil {
		return nil, err
	}
	return mgr, mcbuilder.ControllerManagedBy(mgr).
		For(&corev1.Namespace{}).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			cl, err := mgr.GetCluster(ctx, req.ClusterName)
			if err != nil {
				return ctrl.Result{}, err
			}
			if profile, ok := fleet.ProfileFrom(cl); ok {
				log.FromContext(ctx).Info("Namespace found", "region", profile.Labels["region"])
			}
			return ctrl.Result{}, nil
		}))
}
