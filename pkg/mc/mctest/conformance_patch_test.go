// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var patchBehaviours = []behaviour{
	{"a merge patch changes what it names", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		patch := []byte(`{"data":{"key":null,"new":"x"},"metadata":{"labels":{"l":"v"}}}`)
		g.Expect(s.client.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		g.Expect(cm.Data).To(Equal(map[string]string{"new": "x"}))
		g.Expect(cm.Labels).To(HaveKeyWithValue("l", "v"))
	}},
	{"a JSON patch changes what it names", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		patch := []byte(`[{"op":"test","path":"/data/key","value":"value"},{"op":"replace","path":"/data/key","value":"x"}]`)
		g.Expect(s.client.Patch(t.Context(), cm, client.RawPatch(types.JSONPatchType, patch))).To(Succeed())
		g.Expect(cm.Data).To(HaveKeyWithValue("key", "x"))
	}},
	{"a JSON patch whose test fails is invalid", func(t *testing.T, s *server) {
		cm := s.configMap(t, s.namespace(t), "a")
		patch := []byte(`[{"op":"test","path":"/data/key","value":"other"}]`)
		NewWithT(t).Expect(s.client.Patch(t.Context(), cm, client.RawPatch(types.JSONPatchType, patch))).
			To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	}},
	{"a strategic merge patch merges lists by key", func(t *testing.T, s *server) {
		g := NewWithT(t)
		d := deployment(s.namespace(t), "a")
		g.Expect(s.client.Create(t.Context(), d)).To(Succeed())
		patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"b:1"},{"name":"a","image":"a:2"}]}}}}`)
		g.Expect(s.client.Patch(t.Context(), d, client.RawPatch(types.StrategicMergePatchType, patch))).To(Succeed())
		images := map[string]string{}
		for _, c := range d.Spec.Template.Spec.Containers {
			images[c.Name] = c.Image
		}
		g.Expect(images).To(Equal(map[string]string{"a": "a:2", "b": "b:1"}))
		g.Expect(d.Generation).To(BeEquivalentTo(2))
	}},
	{"a strategic merge patch of a custom resource is not supported", func(t *testing.T, s *server) {
		g := NewWithT(t)
		w := newCustom(widgetKind, s.namespace(t), "a", map[string]any{})
		g.Expect(s.client.Create(t.Context(), w)).To(Succeed())
		g.Expect(s.client.Patch(t.Context(), w, client.RawPatch(types.StrategicMergePatchType, []byte(`{}`)))).
			To(MatchError(apierrors.IsUnsupportedMediaType, "IsUnsupportedMediaType"))
	}},
	{"a patch that names an earlier resource version conflicts", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		stale := cm.DeepCopy()
		cm.Data["key"] = "other"
		g.Expect(s.client.Update(t.Context(), cm)).To(Succeed())
		changed := stale.DeepCopy()
		changed.Data["key"] = "third"
		g.Expect(s.client.Patch(t.Context(), changed, client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{}))).
			To(MatchError(apierrors.IsConflict, "IsConflict"))
	}},
	{"a patch that changes nothing keeps the resource version", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		before := cm.ResourceVersion
		g.Expect(s.client.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"value"}}`)))).To(Succeed())
		g.Expect(cm.ResourceVersion).To(Equal(before))
	}},
	{"a missing object cannot be patched", func(t *testing.T, s *server) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(t), Name: "a"}}
		NewWithT(t).Expect(s.client.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{}`)))).
			To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"a patch of status changes only status", func(t *testing.T, s *server) {
		g := NewWithT(t)
		w := newCustom(widgetKind, s.namespace(t), "a", map[string]any{"color": "red"})
		g.Expect(s.client.Create(t.Context(), w)).To(Succeed())
		patch := []byte(`{"status":{"ready":true},"spec":{"color":"blue"},"metadata":{"labels":{"a":"b"}}}`)
		g.Expect(s.client.Status().Patch(t.Context(), w, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
		g.Expect(w.Object["status"]).To(Equal(map[string]any{"ready": true}))
		g.Expect(w.Object["spec"]).To(Equal(map[string]any{"color": "red"}))
		g.Expect(w.GetLabels()).To(BeEmpty())
		g.Expect(w.GetGeneration()).To(BeEquivalentTo(1))
	}},
}

func configMapApply(namespace, name string, data map[string]string) *corev1apply.ConfigMapApplyConfiguration {
	return corev1apply.ConfigMap(name, namespace).WithData(data)
}

var applyBehaviours = []behaviour{
	{"applying creates or changes an object", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		g.Expect(s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"x": "1"}), client.FieldOwner("one"))).To(Succeed())
		g.Expect(s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"x": "2"}), client.FieldOwner("one"))).To(Succeed())
		cm := &corev1.ConfigMap{}
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"}, cm)).To(Succeed())
		g.Expect(cm.Data).To(Equal(map[string]string{"x": "2"}))
		g.Expect(cm.ManagedFields).To(HaveLen(1))
		g.Expect(cm.ManagedFields[0].Manager).To(Equal("one"))
		g.Expect(cm.ManagedFields[0].Operation).To(Equal(metav1.ManagedFieldsOperationApply))
	}},
	{"applying the same again keeps the resource version", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		read := func() string {
			cm := &corev1.ConfigMap{}
			g.Expect(s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"x": "1"}), client.FieldOwner("one"))).To(Succeed())
			g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"}, cm)).To(Succeed())
			return cm.ResourceVersion
		}
		first := read()
		g.Expect(read()).To(Equal(first))
	}},
	{"a field that its only owner no longer applies is removed", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		g.Expect(s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"x": "1", "y": "1"}), client.FieldOwner("one"))).To(Succeed())
		g.Expect(s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"x": "1"}), client.FieldOwner("one"))).To(Succeed())
		cm := &corev1.ConfigMap{}
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"}, cm)).To(Succeed())
		g.Expect(cm.Data).To(Equal(map[string]string{"x": "1"}))
	}},
	{"two owners share an object, and conflict over a field", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		g.Expect(s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"x": "1"}), client.FieldOwner("one"))).To(Succeed())
		g.Expect(s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"y": "1"}), client.FieldOwner("two"))).To(Succeed())
		err := s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"x": "2"}), client.FieldOwner("two"))
		g.Expect(err).To(MatchError(apierrors.IsConflict, "IsConflict"))
		g.Expect(err).To(MatchError(ContainSubstring(`conflict with "one"`)))
		g.Expect(s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"x": "2"}), client.FieldOwner("two"), client.ForceOwnership)).To(Succeed())
		cm := &corev1.ConfigMap{}
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"}, cm)).To(Succeed())
		g.Expect(cm.Data).To(Equal(map[string]string{"x": "2"}))
	}},
	{"applying over what another client created conflicts", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		g.Expect(s.client.Apply(t.Context(), configMapApply(cm.Namespace, "a", map[string]string{"key": "other"}), client.FieldOwner("one"))).
			To(MatchError(apierrors.IsConflict, "IsConflict"))
	}},
	{"an update of an applied field takes it over", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		g.Expect(s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"x": "1"}), client.FieldOwner("one"))).To(Succeed())
		cm := &corev1.ConfigMap{}
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"}, cm)).To(Succeed())
		cm.Data["x"] = "2"
		g.Expect(s.client.Update(t.Context(), cm, client.FieldOwner("updater"))).To(Succeed())
		err := s.client.Apply(t.Context(), configMapApply(namespace, "a", map[string]string{"x": "3"}), client.FieldOwner("one"))
		g.Expect(err).To(MatchError(ContainSubstring(`conflict with "updater"`)))
	}},
	{"lists of built-in types are applied by key", func(t *testing.T, s *server) {
		g := NewWithT(t)
		d := deployment(s.namespace(t), "a")
		g.Expect(s.client.Create(t.Context(), d)).To(Succeed())
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "b", "image": "b:1"}},
		}}}}}
		u.SetAPIVersion("apps/v1")
		u.SetKind("Deployment")
		u.SetNamespace(d.Namespace)
		u.SetName(d.Name)
		g.Expect(s.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("one"))).To(Succeed())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(d), d)).To(Succeed())
		g.Expect(d.Spec.Template.Spec.Containers).To(HaveLen(2))
	}},
	{"a custom resource is applied, and so is its status", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		w := newCustom(widgetKind, namespace, "a", map[string]any{"color": "red"})
		g.Expect(s.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(w), client.FieldOwner("one"))).To(Succeed())
		status := newCustom(widgetKind, namespace, "a", nil)
		status.Object["status"] = map[string]any{"ready": true}
		delete(status.Object, "spec")
		g.Expect(s.client.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("two"))).To(Succeed())
		got := newCustom(widgetKind, namespace, "a", nil)
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(got), got)).To(Succeed())
		g.Expect(got.Object["spec"]).To(Equal(map[string]any{"color": "red"}))
		g.Expect(got.Object["status"]).To(Equal(map[string]any{"ready": true}))
	}},
	{"lists of custom resources are applied by their schema", func(t *testing.T, s *server) {
		g := NewWithT(t)
		w := newCustom(widgetKind, s.namespace(t), "a", map[string]any{})
		g.Expect(s.client.Create(t.Context(), w)).To(Succeed())
		for _, condition := range []string{"Ready", "Synced"} {
			status := newCustom(widgetKind, w.GetNamespace(), "a", nil)
			delete(status.Object, "spec")
			status.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
			g.Expect(s.client.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(status), client.FieldOwner(condition))).To(Succeed())
		}
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(w), w)).To(Succeed())
		conditions, _, err := unstructured.NestedSlice(w.Object, "status", "conditions")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conditions).To(HaveLen(2))
	}},
	{"owners of metadata share it", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		for _, owner := range []string{"one", "two"} {
			w := newCustom(widgetKind, namespace, "a", map[string]any{})
			w.SetLabels(map[string]string{owner: "yes"})
			w.SetFinalizers([]string{"mctest.example.org/" + owner})
			g.Expect(s.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(w), client.FieldOwner(owner))).To(Succeed())
		}
		w := newCustom(widgetKind, namespace, "a", nil)
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(w), w)).To(Succeed())
		g.Expect(w.GetLabels()).To(And(HaveKey("one"), HaveKey("two")))
		g.Expect(w.GetFinalizers()).To(ConsistOf("mctest.example.org/one", "mctest.example.org/two"))
	}},
	{"applying needs a field manager", func(t *testing.T, s *server) {
		err := s.clientset.CoreV1().RESTClient().Patch(types.ApplyPatchType).Namespace(s.namespace(t)).Resource("configmaps").Name("a").
			Body([]byte(`{"apiVersion":"v1","kind":"ConfigMap"}`)).Do(t.Context()).Error()
		NewWithT(t).Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	}},
}
