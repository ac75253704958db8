// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package handler_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// createSecret prints the requests of an event in the cluster "eu".
func createSecret(handlers mchandler.EventHandlerFunc) {
	var cl cluster.Cluster // that of the event
	q := &plainQueue[mcreconcile.Request]{}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "token"}}
	handlers("eu", cl).Create(context.Background(), event.CreateEvent{Object: secret}, q)
	for _, request := range q.added {
		fmt.Println(request)
	}
}

// Lift adapts any handler of controller-runtime.
func ExampleLift() {
	createSecret(mchandler.Lift(&handler.EnqueueRequestForObject{}))
	// Output: cluster://eu/default/token
}

// The requests are for the cluster of the event.
func ExampleEnqueueRequestsFromMapFunc() {
	createSecret(mchandler.EnqueueRequestsFromMapFunc(func(_ context.Context, secret client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: "all-secrets"}}}
	}))
	// Output: cluster://eu/default/all-secrets
}

// An event in one cluster enqueues requests for other clusters.
func ExampleTypedEnqueueRequestsFromMapFuncWithClusterPreservation() {
	toOthers := func(_ context.Context, secret client.Object) (requests []mcreconcile.Request) {
		for _, name := range []multicluster.ClusterName{"us", "asia"} {
			requests = append(requests, mcreconcile.Request{
				ClusterName: name,
				Request:     reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)},
			})
		}
		return requests
	}
	createSecret(func(multicluster.ClusterName, cluster.Cluster) mchandler.EventHandler {
		return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(toOthers)
	})
	// Output:
	// cluster://us/default/token
	// cluster://asia/default/token
}
