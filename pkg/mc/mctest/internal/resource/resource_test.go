// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	appsv1 "k8s.io/api/apps/v1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

func newScheme(t *testing.T, add ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, f := range add {
		if err := f(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func newCatalogOfTypes(t *testing.T, clusterScoped ...schema.GroupKind) *Catalog {
	t.Helper()
	builtin := newScheme(t, corev1.AddToScheme, appsv1.AddToScheme, appsv1beta1.AddToScheme)
	scheme := newScheme(t, corev1.AddToScheme, appsv1.AddToScheme, appsv1beta1.AddToScheme, v1alpha1.AddToScheme)
	return FromScheme(scheme, builtin, clusterScoped...)
}

var profiles = v1alpha1.GroupVersion.WithResource("clusterprofiles")

func TestFromScheme(t *testing.T) {
	c := newCatalogOfTypes(t)
	t.Run("a built-in kind is served only in its stable versions", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(c.Find(appsv1.SchemeGroupVersion.WithResource("deployments"))).NotTo(BeNil())
		g.Expect(c.Find(appsv1beta1.SchemeGroupVersion.WithResource("deployments"))).To(BeNil())
	})
	t.Run("another kind is served in all its versions", func(t *testing.T) {
		g := NewWithT(t)
		r := c.Find(profiles)
		g.Expect(r).NotTo(BeNil())
		g.Expect(r.Namespaced).To(BeTrue())
		g.Expect(r.Status).To(BeTrue())
		g.Expect(r.Generation).To(BeTrue())
		g.Expect(r.Custom).To(BeFalse())
		g.Expect(c.FindKind(r.GroupVersionKind)).To(BeIdenticalTo(r))
	})
	t.Run("another kind is cluster-scoped if it is listed as such", func(t *testing.T) {
		g := NewWithT(t)
		c := newCatalogOfTypes(t, schema.GroupKind{Group: profiles.Group, Kind: "ClusterProfile"})
		g.Expect(c.Find(profiles).Namespaced).To(BeFalse())
	})
	t.Run("a kind without a list is no resource", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(c.FindKind(corev1.SchemeGroupVersion.WithKind("PodExecOptions"))).To(BeNil())
		g.Expect(c.FindKind(corev1.SchemeGroupVersion.WithKind("ListOptions"))).To(BeNil())
	})
	t.Run("plurals are those of Kubernetes", func(t *testing.T) {
		g := NewWithT(t)
		for _, plural := range []string{"endpoints", "pods", "services", "resourcequotas"} {
			g.Expect(c.Find(corev1.SchemeGroupVersion.WithResource(plural))).NotTo(BeNil(), plural)
		}
	})
}

func widgets(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.org", Scope: apiextensionsv1.ClusterScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
	}}
	for _, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v, Served: true})
	}
	return crd
}

func TestCustomResources(t *testing.T) {
	g := NewWithT(t)
	base := newCatalogOfTypes(t)
	crd := widgets("v1alpha1", "v1", "v1beta1")
	crd.Spec.Versions[0].Served = false
	c := base.With(FromCustomResourceDefinition(crd))
	gr := schema.GroupResource{Group: "example.org", Resource: "widgets"}
	g.Expect(c.Find(gr.WithVersion("v1beta1"))).NotTo(BeNil())
	g.Expect(c.Find(gr.WithVersion("v1alpha1"))).To(BeNil(), "it is not served")
	g.Expect(c.Serving(gr).Version).To(Equal("v1"))
	g.Expect(base.Serving(gr)).To(BeNil(), "the base is left alone")
	g.Expect(c.Find(profiles)).To(BeIdenticalTo(base.Find(profiles)))
	g.Expect(base.With(nil)).To(BeIdenticalTo(base))
}

func TestDocuments(t *testing.T) {
	base := newCatalogOfTypes(t)
	c := base.With(FromCustomResourceDefinition(widgets("v1", "v1beta1")))
	read := func(t *testing.T, c *Catalog, path string, aggregated bool, into any) []byte {
		t.Helper()
		raw, err := c.Document(path, aggregated)
		if err != nil || raw == nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
		return raw
	}
	t.Run("both forms of discovery agree", func(t *testing.T) {
		g := NewWithT(t)
		legacy, aggregated := map[string]bool{}, map[string]bool{}
		var groups metav1.APIGroupList
		read(t, c, "/apis", false, &groups)
		versions := []string{"/api/v1"}
		for _, group := range groups.Groups {
			for _, v := range group.Versions {
				versions = append(versions, "/apis/"+v.GroupVersion)
			}
		}
		for _, path := range versions {
			var list metav1.APIResourceList
			read(t, c, path, false, &list)
			for _, r := range list.APIResources {
				legacy[list.GroupVersion+"/"+r.Name] = true
			}
		}
		for _, path := range []string{"/api", "/apis"} {
			var list apidiscoveryv2.APIGroupDiscoveryList
			read(t, c, path, true, &list)
			for _, group := range list.Items {
				for _, v := range group.Versions {
					gv := schema.GroupVersion{Group: group.Name, Version: v.Version}.String()
					for _, r := range v.Resources {
						aggregated[gv+"/"+r.Resource] = true
						for _, sub := range r.Subresources {
							aggregated[gv+"/"+r.Resource+"/"+sub.Subresource] = true
						}
					}
				}
			}
		}
		g.Expect(aggregated).To(Equal(legacy))
		g.Expect(aggregated).To(HaveKey("example.org/v1beta1/widgets"))
	})
	t.Run("a group prefers its stable version", func(t *testing.T) {
		g := NewWithT(t)
		var group metav1.APIGroup
		read(t, c, "/apis/example.org", false, &group)
		g.Expect(group.PreferredVersion.Version).To(Equal("v1"))
		g.Expect(group.Versions).To(HaveLen(2))
	})
	t.Run("equal documents are written once", func(t *testing.T) {
		g := NewWithT(t)
		var list metav1.APIResourceList
		one := read(t, base, "/apis/apps/v1", false, &list)
		two := read(t, c, "/apis/apps/v1", false, &list)
		g.Expect(&one[0]).To(BeIdenticalTo(&two[0]))
	})
	t.Run("other paths have no document", func(t *testing.T) {
		g := NewWithT(t)
		for _, path := range []string{"/apis/nothing", "/apis/apps/v9", "/api/v2", "/version"} {
			raw, err := c.Document(path, false)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(raw).To(BeNil(), path)
		}
	})
}
