// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// List reads the ClusterProfiles and PlacementDecisions of the namespace, or of all with
// metav1.NamespaceAll, once, as they are in the hub: a Source changes profiles before it
// sends them. It reads the first version of the API that the hub serves. A hub that does
// not serve PlacementDecisions has none; one that does not serve ClusterProfiles is an
// error.
func List(ctx context.Context, config *rest.Config, namespace string) ([]*inventory.Profile, []*v1alpha1.PlacementDecision, error) {
	source, err := New(config, Options{Namespaces: []string{namespace}})
	if err != nil {
		return nil, nil, err
	}
	defer utilnet.CloseIdleConnectionsFor(source.transport)
	var profiles v1alpha1.ClusterProfileList
	if err := listOnce(ctx, source.profileClients(namespace), &profiles); err != nil {
		return nil, nil, fmt.Errorf("hub: listing ClusterProfiles: %w", err)
	}
	var decisions v1alpha1.PlacementDecisionList
	if err := listOnce(ctx, source.decisionClients(namespace), &decisions); err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("hub: listing PlacementDecisions: %w", err)
	}
	return pointers(profiles.Items), pointers(decisions.Items), nil
}

// listOnce lists in the first version that is served.
func listOnce[L any, PL interface {
	*L
	runtime.Object
}](ctx context.Context, clients []apiClient, into PL) error {
	list, err := (&versionedClient{clients: clients}).list(ctx, metav1.ListOptions{})
	if err == nil {
		*into = *list.(PL)
	}
	return err
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
