// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package handler_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

// mapped returns each request twice.
func mapped(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{bare("mapped", obj.GetName()), bare("mapped", obj.GetName()), bare("mapped", "all")}
}

// mappedTo returns requests that name clusters.
func mappedTo(_ context.Context, obj client.Object) []mcreconcile.Request {
	return []mcreconcile.Request{request("us", "mapped", obj.GetName()), request("", "mapped", obj.GetName())}
}

// plain returns a handler that adds without a priority.
func plain[request comparable](req func(client.Object) request) handler.TypedEventHandler[client.Object, request] {
	type queue = workqueue.TypedRateLimitingInterface[request]
	return plainHandler[request]{func(obj client.Object, q queue) { q.Add(req(obj)) }}
}

type plainHandler[request comparable] struct {
	add func(client.Object, workqueue.TypedRateLimitingInterface[request])
}

func (h plainHandler[request]) Create(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[request]) {
	h.add(e.Object, q)
}

func (h plainHandler[request]) Update(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[request]) {
	h.add(e.ObjectNew, q)
}

func (h plainHandler[request]) Delete(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[request]) {
	h.add(e.Object, q)
}

func (h plainHandler[request]) Generic(_ context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[request]) {
	h.add(e.Object, q)
}

func bareRequest(obj client.Object) reconcile.Request {
	return bare(obj.GetNamespace(), obj.GetName())
}

func requestElsewhere(obj client.Object) mcreconcile.Request {
	return request("elsewhere", obj.GetNamespace(), obj.GetName())
}

// always returns the same handler for all clusters.
func always(h mchandler.EventHandler) mchandler.EventHandlerFunc {
	return func(multicluster.ClusterName, cluster.Cluster) mchandler.EventHandler { return h }
}

type handlerCase struct {
	name    string
	handler mchandler.EventHandlerFunc
	// old and new are the requests for the objects, in any order.
	old, new []string
	plain    bool // adds without a priority
	newOnly  bool // ignores the old object of an update
}

var handlerCases = []handlerCase{
	{
		name:    "EnqueueRequestForObject",
		handler: mchandler.EnqueueRequestForObject,
		new:     []string{"cluster://eu/ns/new"}, newOnly: true,
	},
	{
		name:    "TypedEnqueueRequestForObject",
		handler: mchandler.TypedEnqueueRequestForObject[client.Object](),
		new:     []string{"cluster://eu/ns/new"}, newOnly: true,
	},
	{
		name:    "EnqueueRequestForOwner",
		handler: mchandler.EnqueueRequestForOwner(&corev1.ReplicationController{}),
		old:     []string{"cluster://eu/ns/owner-of-old"}, new: []string{"cluster://eu/ns/owner-of-new"},
	},
	{
		name:    "TypedEnqueueRequestForOwner",
		handler: mchandler.EventHandlerFunc(mchandler.TypedEnqueueRequestForOwner[client.Object](&corev1.ReplicationController{})),
		old:     []string{"cluster://eu/ns/owner-of-old"}, new: []string{"cluster://eu/ns/owner-of-new"},
	},
	{
		name:    "EnqueueRequestsFromMapFunc",
		handler: mchandler.EnqueueRequestsFromMapFunc(mapped),
		old:     []string{"cluster://eu/mapped/old", "cluster://eu/mapped/all"}, new: []string{"cluster://eu/mapped/new", "cluster://eu/mapped/all"},
	},
	{
		name:    "TypedEnqueueRequestsFromMapFunc replaces the cluster",
		handler: mchandler.EventHandlerFunc(mchandler.TypedEnqueueRequestsFromMapFunc(mappedTo)),
		old:     []string{"cluster://eu/mapped/old", "cluster://eu/mapped/old"}, new: []string{"cluster://eu/mapped/new", "cluster://eu/mapped/new"},
	},
	{
		name:    "TypedEnqueueRequestsFromMapFuncWithClusterPreservation",
		handler: always(mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(mappedTo)),
		old:     []string{"cluster://us/mapped/old", "mapped/old"}, new: []string{"cluster://us/mapped/new", "mapped/new"},
	},
	{
		name:    "Lift",
		handler: mchandler.Lift(plain(bareRequest)),
		new:     []string{"cluster://eu/ns/new"}, newOnly: true, plain: true,
	},
	{
		name:    "TypedLift",
		handler: mchandler.EventHandlerFunc(mchandler.TypedLift(plain(bareRequest))),
		new:     []string{"cluster://eu/ns/new"}, newOnly: true, plain: true,
	},
	{
		name:    "ForCluster with another name",
		handler: always(mchandler.ForCluster(plain(bareRequest), "named")),
		new:     []string{"cluster://named/ns/new"}, newOnly: true, plain: true,
	},
	{
		name:    "TypedForCluster with another name",
		handler: always(mchandler.TypedForCluster(plain(bareRequest), "named")),
		new:     []string{"cluster://named/ns/new"}, newOnly: true, plain: true,
	},
	{
		name:    "TypedInjectCluster replaces the cluster",
		handler: mchandler.EventHandlerFunc(mchandler.TypedInjectCluster(plain(requestElsewhere))),
		new:     []string{"cluster://eu/ns/new"}, newOnly: true, plain: true,
	},
	{
		name: "WithLowPriorityWhenUnchanged of a plain handler",
		handler: mchandler.EventHandlerFunc(mchandler.WithLowPriorityWhenUnchanged(
			mchandler.TypedEventHandlerFunc[client.Object, mcreconcile.Request](always(plain(requestElsewhere))))),
		new: []string{"cluster://elsewhere/ns/new"}, newOnly: true,
	},
	{
		name: "WithLowPriorityWhenUnchanged of a lifted handler",
		handler: mchandler.EventHandlerFunc(mchandler.WithLowPriorityWhenUnchanged(
			mchandler.TypedLift(plain(bareRequest)))),
		new: []string{"cluster://eu/ns/new"}, newOnly: true,
	},
}

// want returns the requests for an event.
func (tc handlerCase) want(event string) []string {
	want := slices.Clone(tc.new)
	if !tc.newOnly && (event == "update" || event == "resync") {
		for _, old := range tc.old {
			// A request for both objects is enqueued once.
			if !strings.HasSuffix(old, "/all") {
				want = append(want, old)
			}
		}
	}
	return want
}

func TestHandlers(t *testing.T) {
	owner := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: name}
	}
	before, after := pod("old", owner("owner-of-old")), pod("new", owner("owner-of-new"))
	for _, tc := range handlerCases {
		for _, event := range []string{"initial create", "create", "update", "resync", "delete", "generic"} {
			t.Run(tc.name+", "+event+", queue without priorities", func(t *testing.T) {
				q := &plainQueue[mcreconcile.Request]{}
				events(t.Context(), tc.handler("eu", fakeCluster{}), before, after, q)[event]()
				NewWithT(t).Expect(q.added).To(ConsistOf(tc.want(event)))
			})
			t.Run(tc.name+", "+event+", queue with priorities", func(t *testing.T) {
				want := tc.want(event)
				if !tc.plain && (event == "initial create" || event == "resync") {
					for i := range want {
						want[i] += " low"
					}
				}
				q := &priorityQueue[mcreconcile.Request]{}
				events(t.Context(), tc.handler("eu", fakeCluster{}), before, after, q)[event]()
				NewWithT(t).Expect(q.added).To(ConsistOf(want))
			})
		}
	}
}

func TestHandlersOfSeveralClusters(t *testing.T) {
	for _, tc := range []struct {
		name    string
		handler mchandler.EventHandlerFunc
	}{
		{"lifted", mchandler.EnqueueRequestForObject},
		{"injected", mchandler.EventHandlerFunc(mchandler.TypedInjectCluster(plain(requestElsewhere)))},
		{"for owners", mchandler.EnqueueRequestForOwner(&corev1.ReplicationController{})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := &plainQueue[mcreconcile.Request]{}
			obj := pod("a", metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicationController", Name: "a"})
			var all []mchandler.EventHandler
			for _, name := range []multicluster.ClusterName{"eu", "us", ""} {
				all = append(all, tc.handler(name, fakeCluster{}))
			}
			for _, h := range all {
				h.Create(t.Context(), event.CreateEvent{Object: obj}, q)
			}
			NewWithT(t).Expect(q.added).To(Equal([]string{"cluster://eu/ns/a", "cluster://us/ns/a", "ns/a"}))
		})
	}
}

func TestHandlersOfCustomRequests(t *testing.T) {
	toJobs := func(_ context.Context, obj client.Object) []job {
		return []job{{Request: "scan " + obj.GetName(), ClusterName: "us"}}
	}
	for _, tc := range []struct {
		name    string
		handler mchandler.TypedEventHandlerFunc[client.Object, job]
		want    string
	}{
		{"with the cluster of the event", mchandler.TypedEnqueueRequestsFromMapFunc(toJobs), "cluster://eu/scan a low"},
		{
			"with the cluster of the mapped request",
			func(multicluster.ClusterName, cluster.Cluster) handler.TypedEventHandler[client.Object, job] {
				return mchandler.TypedEnqueueRequestsFromMapFuncWithClusterPreservation(toJobs)
			},
			"cluster://us/scan a low",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := &priorityQueue[job]{}
			tc.handler("eu", fakeCluster{}).Create(t.Context(), event.CreateEvent{Object: pod("a"), IsInInitialList: true}, q)
			NewWithT(t).Expect(q.added).To(Equal([]string{tc.want}))
		})
	}
}

func TestTypedHandler(t *testing.T) {
	g := NewWithT(t)
	q := &priorityQueue[mcreconcile.Request]{}
	h := mchandler.TypedEnqueueRequestForObject[*corev1.Pod]()("eu", fakeCluster{})
	h.Create(t.Context(), event.TypedCreateEvent[*corev1.Pod]{Object: pod("a"), IsInInitialList: true}, q)
	g.Expect(q.added).To(Equal([]string{"cluster://eu/ns/a low"}))
}
