// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterinventoryapi

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

// Options configure a Provider.
type Options struct {
	// Credentials turns a profile into a connection. Required unless
	// KubeconfigStrategyOption is set. The provider does not close it.
	Credentials credentials.Method

	// KubeconfigStrategyOption replaces Credentials.
	KubeconfigStrategyOption kubeconfigstrategy.Option

	// Hub is the cluster with the ClusterProfiles. Defaults to the manager's local
	// cluster.
	Hub *rest.Config

	// Namespace, Namespaces, LabelSelector, FieldSelector, Placement and
	// TrustAnnotations are those of hub.Options. If neither Hub nor one of the first
	// four is set, profiles are read from the manager's cache: those of the namespaces
	// and selectors that it is limited to. Otherwise Namespace or Namespaces is
	// required; metav1.NamespaceAll stands for all namespaces.
	Namespace        string
	Namespaces       []string
	LabelSelector    labels.Selector
	FieldSelector    fields.Selector
	Placement        *hub.Placement
	TrustAnnotations bool

	// Selection selects profiles by their content. Defaults to all.
	Selection inventory.Selection

	// IsReady reports whether the cluster of a profile should be connected. It is
	// called after Selection for each version of a profile, and every 10 s while it
	// returns false, one profile after the other: all profiles wait for its return. A
	// connected cluster is disconnected when it returns false for a new version. The
	// context is that of Start.
	//
	// By default a cluster is connected once the condition ControlPlaneHealthy of its
	// profile is True. It then stays until its profile is removed, whatever becomes of
	// the condition: the probes of Connection decide. If Selection.Health is set, that
	// decides instead. To connect all clusters, return true.
	IsReady func(ctx context.Context, clp *inventory.Profile) bool

	// ClusterName returns the cluster name of a profile. Defaults to
	// inventory.ClusterName: "namespace/name". A cluster with several profiles has the
	// name of the first one; fleet.NameByMemberID gives it a name that does not depend
	// on which of them exist.
	ClusterName func(clp *inventory.Profile) multicluster.ClusterName

	// KeepDuplicates engages a cluster once for each of its profiles. By default it is
	// engaged once: see fleet.Options.
	KeepDuplicates bool

	// TrustedNamespaces are namespaces of the hub whose profiles may take each other's
	// place if they are of the same cluster: when one is removed or stops working, the
	// cluster goes on with the next one. By default only the profiles of one namespace
	// may. An author of profiles in one of these namespaces can choose the server and
	// the access provider of clusters in all of them.
	TrustedNamespaces []string

	// ClusterOptions are applied before Connection.ClusterOptions.
	ClusterOptions []cluster.Option

	// NewCluster is Connection.NewCluster. At most one of both may be set.
	NewCluster func(ctx context.Context, clp *inventory.Profile, cfg *rest.Config, opts ...cluster.Option) (cluster.Cluster, error)

	// Connection configures how each cluster is connected and monitored.
	Connection fleet.ConnectionOptions
}

// trustDomain is fleet.Options.TrustDomain.
func (o *Options) trustDomain(clp *inventory.Profile) string {
	if slices.Contains(o.TrustedNamespaces, clp.Namespace) {
		return "trusted namespaces\x00"
	}
	return inventory.TrustDomain(clp)
}

// connection returns Connection with the options of the top level.
func (o *Options) connection() (fleet.ConnectionOptions, error) {
	connection := o.Connection
	connection.ClusterOptions = slices.Concat(o.ClusterOptions, connection.ClusterOptions)
	if o.NewCluster != nil {
		if connection.NewCluster != nil {
			return connection, errors.New("set either Options.NewCluster or Options.Connection.NewCluster")
		}
		connection.NewCluster = o.NewCluster
	}
	return connection, nil
}
