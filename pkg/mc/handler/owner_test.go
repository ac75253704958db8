// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package handler_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
)

func TestOwners(t *testing.T) {
	ref := func(apiVersion, kind, name string, controller bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: ptr.To(controller)}
	}
	owners := []metav1.OwnerReference{
		ref("v1", "ReplicationController", "helper", false),
		ref("v1", "ReplicationController", "boss", true),
		ref("v1", "Node", "machine", false),
		ref("apps/v1", "ReplicationController", "of another group", false),
	}
	for _, tc := range []struct {
		name  string
		owner client.Object
		opts  []handler.OwnerOption
		want  []string
	}{
		{
			name:  "all owners of the kind",
			owner: &corev1.ReplicationController{},
			want:  []string{"cluster://eu/ns/helper", "cluster://eu/ns/boss"},
		},
		{
			name:  "only the controller reference",
			owner: &corev1.ReplicationController{},
			opts:  []handler.OwnerOption{handler.OnlyControllerOwner()},
			want:  []string{"cluster://eu/ns/boss"},
		},
		{
			name:  "a cluster-scoped owner",
			owner: &corev1.Node{},
			want:  []string{"cluster://eu//machine"},
		},
		{
			name:  "an owner that is not the controller",
			owner: &corev1.Node{},
			opts:  []handler.OwnerOption{handler.OnlyControllerOwner()},
		},
		{
			name:  "a kind that is no owner",
			owner: &corev1.Secret{},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := &plainQueue[mcreconcile.Request]{}
			mchandler.EnqueueRequestForOwner(tc.owner, tc.opts...)("eu", fakeCluster{}).
				Create(t.Context(), event.CreateEvent{Object: pod("a", owners...)}, q)
			NewWithT(t).Expect(q.added).To(ConsistOf(tc.want))
		})
	}
}

func TestOwnerMissingInScheme(t *testing.T) {
	g := NewWithT(t)
	forOwner := mchandler.EnqueueRequestForOwner(&corev1.ReplicationController{})
	g.Expect(func() { forOwner("eu", fakeCluster{scheme: runtime.NewScheme()}) }).To(Panic())
	g.Expect(func() { forOwner("us", fakeCluster{}) }).NotTo(Panic())
}
