// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// Reconciler reconciles objects of many clusters, one Request at a time.
type Reconciler = reconcile.TypedReconciler[Request]

// Func is a function that implements Reconciler.
type Func = reconcile.TypedFunc[Request]

// ClusterAware is what a type needs to be a request of a multi-cluster
// controller: the queue compares requests, logs print them, and the runtime
// reads and sets the cluster.
type ClusterAware[request comparable] interface {
	comparable
	fmt.Stringer

	// Cluster returns the name of the cluster that the request is about.
	Cluster() multicluster.ClusterName
	// WithCluster returns the same request for the cluster of that name.
	WithCluster(multicluster.ClusterName) request
}

// Request names an object and the cluster that it lives in.
type Request struct {
	reconcile.Request

	// ClusterName is the name of the cluster. The empty name is the local
	// cluster.
	ClusterName multicluster.ClusterName
}

// String returns "namespace/name" for the local cluster and
// "cluster/namespace/name" for any other.
func (r Request) String() string {
	return join(r.ClusterName, r.Request)
}

// MarshalLog returns what structured loggers print: the cluster, the namespace
// and the name. The namespaced name's own would leave out the cluster.
func (r Request) MarshalLog() any {
	return struct {
		Cluster   multicluster.ClusterName `json:"cluster"`
		Namespace string                   `json:"namespace,omitempty"`
		Name      string                   `json:"name"`
	}{r.ClusterName, r.Namespace, r.Name}
}

// Cluster returns the name of the cluster that the request is about.
func (r Request) Cluster() multicluster.ClusterName {
	return r.ClusterName
}

// WithCluster returns the same request for the cluster of that name.
func (r Request) WithCluster(name multicluster.ClusterName) Request {
	r.ClusterName = name
	return r
}

// WithCluster makes any comparable type a request of a multi-cluster
// controller.
type WithCluster[request comparable] struct {
	// Request is the request within the cluster.
	Request request

	// ClusterName is the name of the cluster. The empty name is the local
	// cluster.
	ClusterName multicluster.ClusterName
}

// String returns the request's own text for the local cluster, preceded by
// "cluster/" for any other.
func (r WithCluster[request]) String() string {
	return join(r.ClusterName, r.Request)
}

// Cluster returns the name of the cluster that the request is about.
func (r WithCluster[request]) Cluster() multicluster.ClusterName {
	return r.ClusterName
}

// WithCluster returns the same request for the cluster of that name.
func (r WithCluster[request]) WithCluster(name multicluster.ClusterName) WithCluster[request] {
	r.ClusterName = name
	return r
}

func join(name multicluster.ClusterName, request any) string {
	if name.Empty() {
		return fmt.Sprint(request)
	}
	return fmt.Sprintf("%s/%v", name, request)
}
