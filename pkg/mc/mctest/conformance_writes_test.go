// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

var writeBehaviours = []behaviour{
	{"an update changes the resource version", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		before := cm.DeepCopy()
		cm.Data["key"] = "other"
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		g.Expect(cm.ResourceVersion).NotTo(Equal(before.ResourceVersion))
		g.Expect(cm.UID).To(Equal(before.UID))
		g.Expect(cm.CreationTimestamp).To(Equal(before.CreationTimestamp))
	}},
	{"an update that changes nothing keeps the resource version", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		before := cm.ResourceVersion
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		g.Expect(cm.ResourceVersion).To(Equal(before))
	}},
	{"an update of an earlier version conflicts", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		stale := cm.DeepCopy()
		cm.Data["key"] = "other"
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		stale.Data["key"] = "third"
		err := s.client.Update(t.Context(), stale)
		g.Expect(err).To(MatchError(apierrors.IsConflict, "IsConflict"))
		g.Expect(err).To(MatchError(ContainSubstring("the object has been modified; please apply your changes to the latest version")))
	}},
	{"an update without a version overwrites", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		cm.ResourceVersion = ""
		cm.Data["key"] = "other"
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
	}},
	{"an update of a custom resource needs a version", func(t *testing.T, s *server) {
		g := NewWithT(t)
		w := newCustom(widgetKind, s.namespace(t), "a", map[string]any{"color": "red"})
		g.Expect(s.client.Create(t.Context(), w)).To(Succeed())
		w.SetResourceVersion("")
		g.Expect(s.client.Update(t.Context(), w)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	}},
	{"an update of another object of the same name conflicts", func(t *testing.T, s *server) {
		cm := s.configMap(t, s.namespace(t), "a")
		cm.UID, cm.ResourceVersion = "other", ""
		NewWithT(t).Expect(s.client.Update(t.Context(), cm)).To(MatchError(apierrors.IsConflict, "IsConflict"))
	}},
	{"a missing object cannot be updated", func(t *testing.T, s *server) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(t), Name: "a"}}
		NewWithT(t).Expect(s.client.Update(t.Context(), cm)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"a dry run of an update stores nothing", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		changed := cm.DeepCopy()
		changed.Data["key"] = "other"
		g.Expect(s.client.Update(t.Context(), changed, client.DryRunAll)).To(Succeed())
		g.Expect(changed.Data).To(HaveKeyWithValue("key", "other"))
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
		g.Expect(cm.Data).To(HaveKeyWithValue("key", "value"))
	}},
}

var deletionBehaviours = []behaviour{
	{"an object without finalizers is removed at once", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		g.Expect(s.client.Delete(t.Context(), cm)).To(Succeed())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		g.Expect(s.client.Delete(t.Context(), cm)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"an object with finalizers is removed with the last of them", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		controllerutil.AddFinalizer(cm, "mctest.example.org/one")
		controllerutil.AddFinalizer(cm, "mctest.example.org/two")
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		g.Expect(s.client.Delete(t.Context(), cm)).To(Succeed())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
		g.Expect(cm.DeletionTimestamp).NotTo(BeNil())
		g.Expect(*cm.DeletionGracePeriodSeconds).To(BeZero())

		controllerutil.RemoveFinalizer(cm, "mctest.example.org/one")
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
		controllerutil.RemoveFinalizer(cm, "mctest.example.org/two")
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"a terminating object accepts no new finalizer", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		controllerutil.AddFinalizer(cm, "mctest.example.org/one")
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		g.Expect(s.client.Delete(t.Context(), cm)).To(Succeed())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
		controllerutil.AddFinalizer(cm, "mctest.example.org/two")
		g.Expect(s.client.Update(t.Context(), cm)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	}},
	{"a patch that removes the last finalizer removes a terminating object", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		controllerutil.AddFinalizer(cm, "mctest.example.org/one")
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		g.Expect(s.client.Delete(t.Context(), cm)).To(Succeed())
		g.Expect(s.client.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"the deletion of an object with generation counts as a change", func(t *testing.T, s *server) {
		g := NewWithT(t)
		w := newCustom(widgetKind, s.namespace(t), "a", map[string]any{})
		w.SetFinalizers([]string{"mctest.example.org/one"})
		g.Expect(s.client.Create(t.Context(), w)).To(Succeed())
		g.Expect(s.client.Delete(t.Context(), w)).To(Succeed())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(w), w)).To(Succeed())
		g.Expect(w.GetGeneration()).To(BeEquivalentTo(2))
	}},
	{"a deletion with another UID conflicts", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		g.Expect(s.client.Delete(t.Context(), cm, client.Preconditions{UID: ptr.To(types.UID("other"))})).
			To(MatchError(apierrors.IsConflict, "IsConflict"))
		g.Expect(s.client.Delete(t.Context(), cm, client.Preconditions{UID: &cm.UID})).To(Succeed())
	}},
	{"a deletion with another resource version conflicts", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		g.Expect(s.client.Delete(t.Context(), cm, client.Preconditions{ResourceVersion: ptr.To("1")})).
			To(MatchError(apierrors.IsConflict, "IsConflict"))
		g.Expect(s.client.Delete(t.Context(), cm, client.Preconditions{ResourceVersion: &cm.ResourceVersion})).To(Succeed())
	}},
	{"a dry run deletes nothing", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		g.Expect(s.client.Delete(t.Context(), cm, client.DryRunAll)).To(Succeed())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(Succeed())
	}},
	{"a collection is deleted by selector", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		s.configMap(t, namespace, "a", "go", "yes")
		s.configMap(t, namespace, "b", "go", "yes")
		s.configMap(t, namespace, "c", "go", "no")
		g.Expect(s.client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(namespace), client.MatchingLabels{"go": "yes"})).To(Succeed())
		var left corev1.ConfigMapList
		g.Expect(s.client.List(t.Context(), &left, client.InNamespace(namespace))).To(Succeed())
		g.Expect(left.Items).To(HaveLen(1))
		g.Expect(left.Items[0].Name).To(Equal("c"))
	}},
	{"a terminating namespace accepts no new content", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "a", Finalizers: []string{"mctest.example.org/one"},
		}}
		g.Expect(s.client.Create(t.Context(), held)).To(Succeed())
		g.Expect(s.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		ns := &corev1.Namespace{}
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Name: namespace}, ns)).To(Succeed())
		g.Expect(ns.Status.Phase).To(Equal(corev1.NamespaceTerminating))
		err := s.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b"}})
		g.Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
		g.Expect(apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)).To(BeTrue())
	}},
}
