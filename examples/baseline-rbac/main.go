// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Baseline-rbac keeps the ClusterRoles and ClusterRoleBindings of a file in every cluster
// that has a ClusterProfile in a hub.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	mcbuilder "github.com/rollcall-dev/rollcall/pkg/mc/builder"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
)

// label is that of the objects of the baseline, so that obsolete ones are found.
const label = "example.rollcall.dev/baseline"

func main() {
	if err := run(); err != nil {
		ctrl.Log.Error(err, "The controller has failed")
		os.Exit(1)
	}
}

func run() error {
	var credentialOptions credentials.Options
	credentialOptions.AddFlags(flag.CommandLine)
	path := flag.String("baseline", "", "`file` with the ClusterRoles and ClusterRoleBindings")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case credentialOptions.ProviderFile == "":
		return errors.New("--clusterprofile-provider-file must be given")
	}
	text, err := os.ReadFile(*path)
	if err != nil {
		return fmt.Errorf("--baseline: %w", err)
	}
	baseline, err := parse(text)
	if err != nil {
		return fmt.Errorf("--baseline: %s: %w", *path, err)
	}
	resolver, err := credentials.New(credentialOptions)
	if err != nil {
		return err
	}
	defer resolver.Close()
	mgr, err := newManager(ctrl.GetConfigOrDie(), resolver, baseline, mcmanager.Options{})
	if err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// parse returns the objects of a YAML file, with the label.
func parse(text []byte) (baseline []*unstructured.Unstructured, err error) {
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return baseline, nil
		} else if err != nil {
			return nil, err
		}
		if gvk := object.GroupVersionKind(); gvk != rbacv1.SchemeGroupVersion.WithKind("ClusterRole") && gvk != rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding") {
			return nil, fmt.Errorf("%q is %s, must be a ClusterRole or ClusterRoleBinding of %s", object.GetName(), gvk, rbacv1.SchemeGroupVersion)
		}
		_ = unstructured.SetNestedField(object.Object, "true", "metadata", "labels", label)
		baseline = append(baseline, object)
	}
}

func newManager(hub *rest.Config, method credentials.Method, baseline []*unstructured.Unstructured, options mcmanager.Options) (mcmanager.Manager, error) {
	provider, err := clusterinventoryapi.New(clusterinventoryapi.Options{Credentials: method})
	if err != nil {
		return nil, err
	}
	mgr, err := mcmanager.New(hub, provider, options)
	if err != nil {
		return nil, err
	}
	toCluster := mchandler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}} // one request for each cluster, whatever has changed there
	})
	return mgr, mcbuilder.ControllerManagedBy(mgr).Named("baseline").
		WatchesRawSource(mcsource.ClusterLifecycle()).
		Watches(&rbacv1.ClusterRole{}, toCluster).
		Watches(&rbacv1.ClusterRoleBinding{}, toCluster).
		Complete(mcreconcile.Func(func(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			cl, err := mgr.GetCluster(ctx, req.ClusterName)
			if err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, apply(ctx, cl.GetClient(), baseline)
		}))
}

// apply applies the baseline to a cluster, and deletes what it no longer has.
func apply(ctx context.Context, c client.Client, baseline []*unstructured.Unstructured) error {
	var errs []error
	wanted := map[string]bool{}
	for _, object := range baseline {
		wanted[object.GetKind()+"/"+object.GetName()] = true
		errs = append(errs, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
			client.FieldOwner("baseline-rbac"), client.ForceOwnership))
	}
	var roles rbacv1.ClusterRoleList
	var bindings rbacv1.ClusterRoleBindingList
	errs = append(errs, c.List(ctx, &roles, client.MatchingLabels{label: "true"}), c.List(ctx, &bindings, client.MatchingLabels{label: "true"}))
	prune := func(kind string, object client.Object) {
		if !wanted[kind+"/"+object.GetName()] {
			unchanged := client.Preconditions(metav1.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())})
			errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, object, unchanged)))
		}
	}
	for i := range bindings.Items { // before the roles that they refer to
		prune("ClusterRoleBinding", &bindings.Items[i])
	}
	for i := range roles.Items {
		prune("ClusterRole", &roles.Items[i])
	}
	return errors.Join(errs...)
}
