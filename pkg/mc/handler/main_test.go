// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package handler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

func bare(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func request(cluster multicluster.ClusterName, namespace, name string) mcreconcile.Request {
	return mcreconcile.Request{Request: bare(namespace, name), ClusterName: cluster}
}

// job is a custom type of request.
type job = mcreconcile.WithCluster[string]

func pod(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1", OwnerReferences: owners}}
}

// fakeCluster has the parts of a cluster that handlers need.
type fakeCluster struct {
	cluster.Cluster
	scheme *runtime.Scheme
}

func (c fakeCluster) GetScheme() *runtime.Scheme {
	if c.scheme != nil {
		return c.scheme
	}
	return scheme.Scheme
}

func (fakeCluster) GetRESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ReplicationController"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	return mapper
}

// plainQueue is a queue without priorities that records adds.
type plainQueue[request comparable] struct {
	workqueue.TypedRateLimitingInterface[request]
	added []string
}

func (q *plainQueue[request]) Add(item request) {
	q.added = append(q.added, fmt.Sprint(item))
}

// priorityQueue is a queue with priorities that records adds.
type priorityQueue[request comparable] struct {
	priorityqueue.PriorityQueue[request]
	added []string
}

func (q *priorityQueue[request]) Add(item request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

func (q *priorityQueue[request]) AddWithOpts(opts priorityqueue.AddOpts, items ...request) {
	suffix := ""
	if opts.Priority != nil && *opts.Priority == handler.LowPriority {
		suffix = " low"
	}
	if opts.After > 0 {
		suffix += " after " + opts.After.Round(time.Second).String()
	}
	if opts.RateLimited {
		suffix += " limited"
	}
	for _, item := range items {
		q.added = append(q.added, fmt.Sprint(item)+suffix)
	}
}

// events returns functions that call the handler with each type of event. Of an
// update, before is the old object.
func events[request comparable](
	ctx context.Context, h handler.TypedEventHandler[client.Object, request], before, after client.Object,
	q workqueue.TypedRateLimitingInterface[request],
) map[string]func() {
	changed := after.DeepCopyObject().(client.Object)
	changed.SetResourceVersion("2")
	return map[string]func(){
		"initial create": func() {
			h.Create(ctx, event.CreateEvent{Object: after, IsInInitialList: true}, q)
		},
		"create":  func() { h.Create(ctx, event.CreateEvent{Object: after}, q) },
		"update":  func() { h.Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: changed}, q) },
		"resync":  func() { h.Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q) },
		"delete":  func() { h.Delete(ctx, event.DeleteEvent{Object: after}, q) },
		"generic": func() { h.Generic(ctx, event.GenericEvent{Object: after}, q) },
	}
}
