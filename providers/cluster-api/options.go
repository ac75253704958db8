// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"context"
	"errors"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
)

// Options configure a Provider. The zero value is usable.
type Options struct {
	// ClusterOptions are applied before Connection.ClusterOptions.
	ClusterOptions []cluster.Option

	// ObjectToWatch is of the type that stands for a cluster, in exactly this version:
	// a type in the scheme of the manager, or an unstructured object with apiVersion and
	// kind. The functions below get objects of this type. Defaults to Cluster of
	// cluster.x-k8s.io in v1beta2, or v1beta1 while the management cluster does not
	// serve v1beta2.
	ObjectToWatch client.Object

	// GetSecret returns the kubeconfig of a cluster. It is called concurrently, with a
	// context that ends with Connection.ConnectTimeout, a client of the management
	// cluster that has no cache, and the last version of the object. It is called again
	// after each change of the object, or of a Secret in its namespace whose label
	// cluster.x-k8s.io/cluster-name has its name, and with backoff while the cluster
	// cannot be connected. Files that the kubeconfig names are read at these times.
	// Defaults to the key "value" of the watched Secret "NAME-kubeconfig".
	GetSecret func(ctx context.Context, cl client.Client, ccl client.Object) ([]byte, error)

	// NewCluster creates the cluster of an object, as Connection.NewCluster does. At most
	// one of both may be set.
	NewCluster func(ctx context.Context, ccl client.Object, cfg *rest.Config, opts ...cluster.Option) (cluster.Cluster, error)

	// IsReady reports whether the cluster of an object should be connected. It is called
	// for each version of the object that passes Predicates, after each change of its
	// Secrets, and for Reconcile, until it returns true. The cluster then stays
	// until the object is deleted, or its control plane is. All clusters wait for its
	// return. By default, a Cluster is ready once its control plane is initialized, and
	// an object of another type always.
	IsReady func(ctx context.Context, ccl client.Object) bool

	// Predicates select objects and changes. All must pass for an event to count. If a
	// changed object passes neither as an update nor as a creation, its cluster is
	// disengaged: labels are a way to select clusters. If it passes only as a creation,
	// the change is ignored, so a predicate that ignores changes of the status also
	// keeps IsReady from being called. Deletions always count. All clusters wait for
	// their return. Defaults to none.
	Predicates []predicate.Predicate

	// Namespace has the objects and their Secrets. Defaults to all namespaces.
	Namespace string

	// Hub is the management cluster. Defaults to the manager's local cluster.
	Hub *rest.Config

	// Kubeconfig defines what the kubeconfigs may do. By default they run no command and
	// read no file.
	Kubeconfig kubeconfig.Options

	// Connection configures how each cluster is connected and monitored.
	Connection fleet.ConnectionOptions
}

// connection returns Connection with the options of the top level. The function returns
// the object of a profile.
func (o *Options) connection(object func(inventory.Key) (client.Object, error)) (fleet.ConnectionOptions, error) {
	connection, newCluster := o.Connection, o.NewCluster
	connection.ClusterOptions = slices.Concat(o.ClusterOptions, connection.ClusterOptions)
	if newCluster == nil {
		return connection, nil
	}
	if connection.NewCluster != nil {
		return connection, errors.New("set either Options.NewCluster or Options.Connection.NewCluster")
	}
	connection.NewCluster = func(ctx context.Context, profile *inventory.Profile, config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
		ccl, err := object(inventory.KeyOf(profile))
		if err != nil {
			return nil, err
		}
		return newCluster(ctx, ccl, config, opts...)
	}
	return connection, nil
}
