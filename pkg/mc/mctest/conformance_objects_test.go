// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1"}}},
			},
		},
	}
}

var objectBehaviours = []behaviour{
	{"a new object has a UID, a resource version and a creation timestamp", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a")
		g.Expect(cm.UID).NotTo(BeEmpty())
		g.Expect(cm.ResourceVersion).NotTo(BeEmpty())
		g.Expect(cm.CreationTimestamp.IsZero()).To(BeFalse())
		g.Expect(cm.Generation).To(BeZero())
	}},
	{"a generated name begins with generateName", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(t), GenerateName: "base-"}}
		g.Expect(s.client.Create(t.Context(), cm)).To(Succeed())
		g.Expect(cm.Name).To(MatchRegexp(`^base-[a-z0-9]{5}$`))
		g.Expect(cm.GenerateName).To(Equal("base-"))
	}},
	{"a name can be taken only once", func(t *testing.T, s *server) {
		cm := s.configMap(t, s.namespace(t), "a")
		again := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name}}
		NewWithT(t).Expect(s.client.Create(t.Context(), again)).To(MatchError(apierrors.IsAlreadyExists, "IsAlreadyExists"))
	}},
	{"an object that carries a resource version cannot be created", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(t), Name: "a", ResourceVersion: "1"}}
		_, err := s.clientset.CoreV1().ConfigMaps(cm.Namespace).Create(t.Context(), cm, metav1.CreateOptions{})
		g.Expect(err).To(MatchError(ContainSubstring("resourceVersion should not be set on objects to be created")))
	}},
	{"an object without a name is invalid", func(t *testing.T, s *server) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(t)}}
		NewWithT(t).Expect(s.client.Create(t.Context(), cm)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	}},
	{"a name with capitals is invalid", func(t *testing.T, s *server) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(t), Name: "Big"}}
		NewWithT(t).Expect(s.client.Create(t.Context(), cm)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	}},
	{"an object in a missing namespace cannot be created", func(t *testing.T, s *server) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "nowhere", Name: "a"}}
		err := s.client.Create(t.Context(), cm)
		g := NewWithT(t)
		g.Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		g.Expect(err).To(MatchError(ContainSubstring(`namespaces "nowhere" not found`)))
	}},
	{"a missing object cannot be read", func(t *testing.T, s *server) {
		err := s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace(t), Name: "a"}, &corev1.ConfigMap{})
		g := NewWithT(t)
		g.Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		g.Expect(err).To(MatchError(ContainSubstring(`configmaps "a" not found`)))
	}},
	{"a resource that is not served is not found", func(t *testing.T, s *server) {
		err := s.clientset.CoreV1().RESTClient().Get().AbsPath("/apis/missing.example.org/v1/things").Do(t.Context()).Error()
		NewWithT(t).Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"a dry run stores nothing", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(t), Name: "a"}}
		g.Expect(s.client.Create(t.Context(), cm, client.DryRunAll)).To(Succeed())
		g.Expect(cm.UID).NotTo(BeEmpty())
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"plain secret data becomes data", func(t *testing.T, s *server) {
		g := NewWithT(t)
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(t), Name: "a"},
			StringData: map[string]string{"token": "abc"},
		}
		g.Expect(s.client.Create(t.Context(), secret)).To(Succeed())
		got := &corev1.Secret{}
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(secret), got)).To(Succeed())
		g.Expect(got.Data).To(HaveKeyWithValue("token", []byte("abc")))
		g.Expect(got.StringData).To(BeEmpty())
		g.Expect(got.Type).To(Equal(corev1.SecretTypeOpaque))
	}},
	{"a namespace is active and labelled with its name", func(t *testing.T, s *server) {
		g := NewWithT(t)
		ns := &corev1.Namespace{}
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Name: s.namespace(t)}, ns)).To(Succeed())
		g.Expect(ns.Status.Phase).To(Equal(corev1.NamespaceActive))
		g.Expect(ns.Labels).To(HaveKeyWithValue("kubernetes.io/metadata.name", ns.Name))
		g.Expect(ns.Spec.Finalizers).To(ConsistOf(corev1.FinalizerKubernetes))
	}},
	{"kube-system exists and has a UID", func(t *testing.T, s *server) {
		g := NewWithT(t)
		ns := &corev1.Namespace{}
		g.Eventually(func() error {
			return s.client.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, ns)
		}).Should(Succeed())
		g.Expect(ns.UID).NotTo(BeEmpty())
	}},
	{"an event of one group is an event of the other", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "a"},
			InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: namespace, Name: "x"},
			Message:        "it works", Reason: "Works", Type: "Normal",
		}
		g.Expect(s.client.Create(t.Context(), event)).To(Succeed())
		got, err := s.clientset.EventsV1().Events(namespace).Get(t.Context(), "a", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Note).To(Equal("it works"))
		g.Expect(got.Regarding.Name).To(Equal("x"))
		g.Expect(got.UID).To(Equal(event.UID))
	}},
	{"generation changes with spec, and not with metadata", func(t *testing.T, s *server) {
		g := NewWithT(t)
		d := deployment(s.namespace(t), "a")
		g.Expect(s.client.Create(t.Context(), d)).To(Succeed())
		g.Expect(d.Generation).To(BeEquivalentTo(1))
		d.Labels = map[string]string{"a": "b"}
		g.Expect(s.client.Update(t.Context(), d)).To(Succeed())
		g.Expect(d.Generation).To(BeEquivalentTo(1))
		d.Spec.Replicas = ptr.To[int32](3)
		g.Expect(s.client.Update(t.Context(), d)).To(Succeed())
		g.Expect(d.Generation).To(BeEquivalentTo(2))
	}},
	{"status is written only through its subresource", func(t *testing.T, s *server) {
		g := NewWithT(t)
		d := deployment(s.namespace(t), "a")
		d.Status.Replicas = 7
		g.Expect(s.client.Create(t.Context(), d)).To(Succeed())
		g.Expect(d.Status.Replicas).To(BeZero())

		d.Status.Replicas = 5
		g.Expect(s.client.Update(t.Context(), d)).To(Succeed())
		g.Expect(d.Status.Replicas).To(BeZero())

		d.Status.Replicas, d.Spec.Replicas = 2, ptr.To[int32](9)
		g.Expect(s.client.Status().Update(t.Context(), d)).To(Succeed())
		g.Expect(d.Status.Replicas).To(BeEquivalentTo(2))
		g.Expect(*d.Spec.Replicas).To(BeEquivalentTo(1))
		g.Expect(d.Generation).To(BeEquivalentTo(1))
	}},
	{"a kind without status has no status subresource", func(t *testing.T, s *server) {
		cm := s.configMap(t, s.namespace(t), "a")
		err := s.client.Status().Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{}`)))
		NewWithT(t).Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}},
	{"metadata can be read", func(t *testing.T, s *server) {
		g := NewWithT(t)
		cm := s.configMap(t, s.namespace(t), "a", "x", "y")
		got := &metav1.PartialObjectMetadata{}
		got.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(cm), got)).To(Succeed())
		g.Expect(got.UID).To(Equal(cm.UID))
		g.Expect(got.Labels).To(HaveKeyWithValue("x", "y"))
	}},
}
