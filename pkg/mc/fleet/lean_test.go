// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
)

// lean returns the transforms that the options give Pods and all else.
func lean(opts ...cluster.Option) (ofPods, ofOthers toolscache.TransformFunc) {
	o := &cluster.Options{}
	for _, opt := range opts {
		opt(o)
	}
	ofPods = o.Cache.DefaultTransform
	for object, of := range o.Cache.ByObject {
		if _, ok := object.(*corev1.Pod); ok && of.Transform != nil {
			ofPods = of.Transform
		}
	}
	return ofPods, o.Cache.DefaultTransform
}

func fullPod() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{"k": "v"}, Finalizers: []string{"f"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec:   corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func TestALeanCacheLeavesOut(t *testing.T) {
	marked := func(object any) (any, error) {
		object.(client.Object).SetAnnotations(map[string]string{"marked": "yes"})
		return object, nil
	}
	onlyMetadata := fullPod()
	onlyMetadata.ManagedFields, onlyMetadata.Spec, onlyMetadata.Status = nil, corev1.PodSpec{}, corev1.PodStatus{}
	slim := fullPod()
	slim.ManagedFields = nil
	markedSlim := slim.DeepCopy()
	markedSlim.Annotations = map[string]string{"marked": "yes"}
	markedMetadata := onlyMetadata.DeepCopy()
	markedMetadata.Annotations = map[string]string{"marked": "yes"}
	byObject := map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: marked}}

	for _, tc := range []struct {
		name             string
		options          []cluster.Option
		ofPods, ofOthers *corev1.Pod
	}{
		{"managed fields, of all", []cluster.Option{fleet.LeanCache()}, slim, slim},
		{"content, of the kinds that are named", []cluster.Option{fleet.LeanCache(&corev1.Pod{})}, onlyMetadata, slim},
		{"after the default transform there is", []cluster.Option{
			func(o *cluster.Options) { o.Cache.DefaultTransform = marked }, fleet.LeanCache(),
		}, markedSlim, markedSlim},
		{"after the transform of a kind there is", []cluster.Option{
			func(o *cluster.Options) { o.Cache.ByObject = byObject }, fleet.LeanCache(),
		}, markedSlim, slim},
		{"content after the transform of a kind there is", []cluster.Option{
			func(o *cluster.Options) { o.Cache.ByObject = byObject }, fleet.LeanCache(&corev1.Pod{}),
		}, markedMetadata, slim},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			ofPods, ofOthers := lean(tc.options...)
			g.Expect(ofPods(fullPod())).To(Equal(tc.ofPods))
			g.Expect(ofOthers(fullPod())).To(Equal(tc.ofOthers))
		})
	}
	NewWithT(t).Expect(byObject[firstKey(byObject)].Transform(fullPod())).To(HaveField("Spec.NodeName", "n"), "what clusters share is not changed")
}

func firstKey(m map[client.Object]cache.ByObject) client.Object {
	for key := range m {
		return key
	}
	return nil
}

func TestALeanCacheTakesAllFormsOfObjects(t *testing.T) {
	g := NewWithT(t)
	transform, _ := lean(fleet.LeanCache(&corev1.Pod{}))
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{},
		"metadata": map[string]any{"name": "a", "managedFields": []any{}},
	}}
	g.Expect(transform(u)).To(HaveField("Object", Equal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"},
	})))
	partial := &metav1.PartialObjectMetadata{ObjectMeta: fullPod().ObjectMeta}
	g.Expect(transform(partial)).To(And(HaveField("Name", "a"), HaveField("ManagedFields", BeNil())))
	missed := toolscache.DeletedFinalStateUnknown{Key: "a"}
	g.Expect(transform(missed)).To(Equal(missed))
}
