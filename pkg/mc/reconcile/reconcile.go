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

// ClusterAware is the constraint for requests of a multi-cluster controller. The
// queue compares requests, logs print them, and the runtime gets and sets their
// cluster.
type ClusterAware[request comparable] interface {
	comparable
	fmt.Stringer

	// Cluster returns the name of the request's cluster.
	Cluster() multicluster.ClusterName
	// WithCluster returns a copy of the request for the named cluster.
	WithCluster(multicluster.ClusterName) request
}

// Request identifies an object in a cluster.
type Request struct {
	reconcile.Request

	// ClusterName is the name of the cluster. The empty name is the local
	// cluster.
	ClusterName multicluster.ClusterName
}

// String returns "namespace/name" for the local cluster and
// "cluster://CLUSTER/namespace/name" for any other.
func (r Request) String() string {
	return join(r.ClusterName, r.Request)
}

// MarshalLog returns the cluster, namespace and name for structured loggers. The
// method of the embedded request would omit the cluster.
func (r Request) MarshalLog() any {
	return struct {
		Cluster   multicluster.ClusterName `json:"cluster"`
		Namespace string                   `json:"namespace,omitempty"`
		Name      string                   `json:"name"`
	}{r.ClusterName, r.Namespace, r.Name}
}

// Cluster returns the name of the request's cluster.
func (r Request) Cluster() multicluster.ClusterName {
	return r.ClusterName
}

// WithCluster returns a copy of the request for the named cluster.
func (r Request) WithCluster(name multicluster.ClusterName) Request {
	r.ClusterName = name
	return r
}

// WithCluster is a request of a multi-cluster controller that consists of any
// comparable type and a cluster.
type WithCluster[request comparable] struct {
	// Request is the request within the cluster.
	Request request

	// ClusterName is the name of the cluster. The empty name is the local
	// cluster.
	ClusterName multicluster.ClusterName
}

// String returns the text of the request, preceded by "cluster://CLUSTER/" unless
// the cluster is the local one.
func (r WithCluster[request]) String() string {
	return join(r.ClusterName, r.Request)
}

// Cluster returns the name of the request's cluster.
func (r WithCluster[request]) Cluster() multicluster.ClusterName {
	return r.ClusterName
}

// WithCluster returns a copy of the request for the named cluster.
func (r WithCluster[request]) WithCluster(name multicluster.ClusterName) WithCluster[request] {
	r.ClusterName = name
	return r
}

func join(name multicluster.ClusterName, request any) string {
	if name.Empty() {
		return fmt.Sprint(request)
	}
	return fmt.Sprintf("cluster://%s/%v", name, request)
}
