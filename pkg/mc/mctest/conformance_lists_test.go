// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package mctest_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func names(list *corev1.ConfigMapList) []string {
	out := []string{}
	for _, cm := range list.Items {
		out = append(out, cm.Name)
	}
	return out
}

func (s *server) numbered(t *testing.T, n int) (namespace string) {
	t.Helper()
	namespace = s.namespace(t)
	for i := range n {
		s.configMap(t, namespace, fmt.Sprintf("cm-%d", i))
	}
	return namespace
}

var listBehaviours = []behaviour{
	{"a list is sorted by name and has a resource version", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		for _, name := range []string{"b", "a", "c"} {
			s.configMap(t, namespace, name)
		}
		var list corev1.ConfigMapList
		g.Expect(s.client.List(t.Context(), &list, client.InNamespace(namespace))).To(Succeed())
		g.Expect(names(&list)).To(Equal([]string{"a", "b", "c"}))
		g.Expect(list.ResourceVersion).NotTo(BeEmpty())
	}},
	{"an empty list has a resource version", func(t *testing.T, s *server) {
		g := NewWithT(t)
		var list corev1.ConfigMapList
		g.Expect(s.client.List(t.Context(), &list, client.InNamespace(s.namespace(t)))).To(Succeed())
		g.Expect(list.Items).To(BeEmpty())
		g.Expect(list.ResourceVersion).NotTo(BeEmpty())
	}},
	{"a list over all namespaces shows each of them", func(t *testing.T, s *server) {
		g := NewWithT(t)
		one, two := s.namespace(t), s.namespace(t)
		s.configMap(t, one, "a", "test", one)
		s.configMap(t, two, "b", "test", one)
		var list corev1.ConfigMapList
		g.Expect(s.client.List(t.Context(), &list, client.MatchingLabels{"test": one})).To(Succeed())
		g.Expect(names(&list)).To(ConsistOf("a", "b"))
	}},
	{"label selectors select", func(t *testing.T, s *server) {
		namespace := s.namespace(t)
		s.configMap(t, namespace, "a", "x", "1", "y", "1")
		s.configMap(t, namespace, "b", "x", "2")
		s.configMap(t, namespace, "c")
		for selector, want := range map[string][]string{
			"x=1":        {"a"},
			"x!=1":       {"b", "c"},
			"x in (1,2)": {"a", "b"},
			"x,!y":       {"b"},
			"!x":         {"c"},
		} {
			list, err := s.clientset.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(names(list)).To(Equal(want), selector)
		}
	}},
	{"field selectors select by name and namespace", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 3)
		var list corev1.ConfigMapList
		g.Expect(s.client.List(t.Context(), &list, &client.ListOptions{
			FieldSelector: fields.SelectorFromSet(fields.Set{"metadata.name": "cm-1", "metadata.namespace": namespace}),
		})).To(Succeed())
		g.Expect(names(&list)).To(Equal([]string{"cm-1"}))
	}},
	{"field selectors select by the fields that a kind supports", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		for name, kind := range map[string]corev1.SecretType{"a": "example.org/one", "b": "example.org/two"} {
			g.Expect(s.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: kind})).To(Succeed())
		}
		var list corev1.SecretList
		g.Expect(s.client.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingFields{"type": "example.org/two"})).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Name).To(Equal("b"))
	}},
	{"field selectors by other fields are bad requests", func(t *testing.T, s *server) {
		var list corev1.ConfigMapList
		NewWithT(t).Expect(s.client.List(t.Context(), &list, client.MatchingFields{"data.key": "x"})).
			To(MatchError(apierrors.IsBadRequest, "IsBadRequest"))
	}},
	{"a page has a continue token and the number of remaining items", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 5)
		var all []string
		var first, page corev1.ConfigMapList
		g.Expect(s.client.List(t.Context(), &first, client.InNamespace(namespace), client.Limit(2))).To(Succeed())
		g.Expect(*first.RemainingItemCount).To(BeEquivalentTo(3))
		all = append(all, names(&first)...)
		for next := first.Continue; next != ""; next = page.Continue {
			page = corev1.ConfigMapList{}
			g.Expect(s.client.List(t.Context(), &page, client.InNamespace(namespace), client.Limit(2), client.Continue(next))).To(Succeed())
			g.Expect(page.ResourceVersion).To(Equal(first.ResourceVersion))
			all = append(all, names(&page)...)
		}
		g.Expect(all).To(Equal([]string{"cm-0", "cm-1", "cm-2", "cm-3", "cm-4"}))
		g.Expect(page.RemainingItemCount).To(BeNil())
	}},
	{"all pages are of the same revision", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 4)
		var first, rest corev1.ConfigMapList
		g.Expect(s.client.List(t.Context(), &first, client.InNamespace(namespace), client.Limit(2))).To(Succeed())
		s.configMap(t, namespace, "cm-9")
		g.Expect(s.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cm-3"}})).To(Succeed())
		g.Expect(s.client.List(t.Context(), &rest, client.InNamespace(namespace), client.Continue(first.Continue))).To(Succeed())
		g.Expect(names(&rest)).To(Equal([]string{"cm-2", "cm-3"}))
	}},
	{"a page of a selection has no number of remaining items", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.namespace(t)
		for _, name := range []string{"a", "b", "c"} {
			s.configMap(t, namespace, name, "x", "y")
		}
		var page corev1.ConfigMapList
		g.Expect(s.client.List(t.Context(), &page, client.InNamespace(namespace), client.Limit(1), client.MatchingLabels{"x": "y"})).To(Succeed())
		g.Expect(page.Items).To(HaveLen(1))
		g.Expect(page.Continue).NotTo(BeEmpty())
		g.Expect(page.RemainingItemCount).To(BeNil())
	}},
	{"a list at an exact resource version shows that version", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 2)
		configMaps := s.clientset.CoreV1().ConfigMaps(namespace)
		before, err := configMaps.List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(configMaps.Delete(t.Context(), "cm-0", metav1.DeleteOptions{})).To(Succeed())
		again, err := configMaps.List(t.Context(), metav1.ListOptions{
			ResourceVersion: before.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names(again)).To(Equal([]string{"cm-0", "cm-1"}))
		g.Expect(again.ResourceVersion).To(Equal(before.ResourceVersion))
	}},
	{"a limit does not apply to a list from any resource version", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 3)
		g.Eventually(func(g Gomega) {
			list, err := s.clientset.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{ResourceVersion: "0", Limit: 1})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(list.Items).To(HaveLen(3))
			g.Expect(list.Continue).To(BeEmpty())
		}).Should(Succeed())
	}},
	{"a list from a future resource version times out", func(t *testing.T, s *server) {
		err := s.clientset.CoreV1().RESTClient().Get().Namespace("default").Resource("configmaps").
			Param("resourceVersion", "999999999").MaxRetries(0).Do(t.Context()).Error()
		NewWithT(t).Expect(apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)).To(BeTrue(), "%v", err)
	}},
	{"a broken continue token is a bad request", func(t *testing.T, s *server) {
		_, err := s.clientset.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{Continue: "broken"})
		NewWithT(t).Expect(err).To(MatchError(apierrors.IsBadRequest, "IsBadRequest"))
	}},
	{"a match without a resource version is invalid", func(t *testing.T, s *server) {
		_, err := s.clientset.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		NewWithT(t).Expect(err).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	}},
	{"objects without a Go type are listed", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 2)
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("v1")
		list.SetKind("ConfigMapList")
		g.Expect(s.client.List(t.Context(), list, client.InNamespace(namespace))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(2))
		g.Expect(list.Items[0].GetName()).To(Equal("cm-0"))
	}},
	{"metadata can be listed", func(t *testing.T, s *server) {
		g := NewWithT(t)
		namespace := s.numbered(t, 2)
		c, err := metadata.NewForConfig(s.config)
		g.Expect(err).NotTo(HaveOccurred())
		list, err := c.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).List(t.Context(), metav1.ListOptions{Limit: 1})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Name).To(Equal("cm-0"))
		g.Expect(list.Continue).NotTo(BeEmpty())
	}},
}
