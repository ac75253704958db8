// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
)

// The clusters of one namespace and those of a placement decision become one fleet.
func Example() {
	config := ctrl.GetConfigOrDie()
	production, err := hub.New(config, hub.Options{
		Namespaces:    []string{"fleet"},
		LabelSelector: labels.SelectorFromSet(labels.Set{"env": "production"}),
	})
	if err != nil {
		panic(err)
	}
	apps, err := hub.New(config, hub.Options{
		Namespaces: []string{metav1.NamespaceAll},
		Placement:  &hub.Placement{Namespace: "apps", DecisionKey: "checkout"},
	})
	if err != nil {
		panic(err)
	}
	resolver, err := credentials.New(credentials.Options{ProviderFile: "providers.json"})
	if err != nil {
		panic(err)
	}
	clusters, err := fleet.New(fleet.Options{
		Source:      inventory.Merge(production, apps),
		Credentials: resolver,
	})
	if err != nil {
		panic(err)
	}
	mgr, err := mcmanager.New(config, clusters, mcmanager.Options{})
	if err != nil {
		panic(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}
