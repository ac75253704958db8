// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestNamespaces(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	in := func(namespace, name string) *inventory.Profile {
		p := profile(name, "1")
		p.Namespace = namespace
		return p
	}
	g.Expect(c.Create(in("default", "a"), in("kube-public", "b"), in("kube-system", "c"))).To(Succeed())
	sink := run(t, c, hub.Options{Namespace: "default", Namespaces: []string{"kube-public", "default"}})
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(sink.content()).To(Equal("default/a=1 kube-public/b=1"))
	g.Expect(c.Requests("watch", "clusterprofiles")).To(Equal(2), "one for each namespace")
}

func TestFieldSelector(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("a", "1"), profile("b", "1"))).To(Succeed())
	sink := run(t, c, hub.Options{Namespaces: everywhere, FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, "b")})
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(sink.content()).To(Equal("default/b=1"))
}

func TestClusterSetOfNamespace(t *testing.T) {
	for _, tc := range []struct {
		name    string
		options hub.Options
		label   string
	}{
		{"all namespaces", hub.Options{Namespaces: everywhere}, v1alpha1.LabelClusterSetKey},
		{"one namespace", hub.Options{Namespace: "default"}, v1alpha1.LabelClusterSetKey},
		{"the label as spelled in the KEP", hub.Options{Namespaces: everywhere}, "clusterset.multicluster.x-k8s.io"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newHub(t)
			label := func(set string) {
				namespace := &corev1.Namespace{}
				g.Expect(c.Get(client.ObjectKey{Name: "default"}, namespace)).To(Succeed())
				namespace.Labels = map[string]string{}
				if set != "" {
					namespace.Labels[tc.label] = set
				}
				g.Expect(c.Update(namespace)).To(Succeed())
			}
			label("production")
			forged := profile("forged", "1")
			forged.Annotations = map[string]string{inventory.AnnotationNamespaceClusterSet: "other"}
			g.Expect(c.Create(profile("a", "1"), forged)).To(Succeed())

			sink := run(t, c, tc.options)
			g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
			g.Expect(sink.set("a")()).To(Equal("production"), "from the first Put on")
			g.Expect(sink.set("forged")()).To(Equal("production"))

			label("staging")
			g.Eventually(sink.set("a")).WithTimeout(timeout).Should(Equal("staging"))
			label("")
			g.Eventually(sink.set("a")).WithTimeout(timeout).Should(BeEmpty())
			g.Eventually(sink.set("forged")).WithTimeout(timeout).Should(BeEmpty())
		})
	}
}

func TestNamespacesForbidden(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	c.Fault(mctest.Forbidden.On("namespaces"))
	g.Expect(c.Create(profile("a", "1"))).To(Succeed())
	logs := &logBuffer{}
	sink := run(t, c, hub.Options{Namespaces: []string{"default", "kube-public"}}, logs)
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(sink.content()).To(Equal("default/a=1"))
	g.Expect(strings.Count(logs.text(), "Not allowed to list and watch namespaces")).To(Equal(1))
}
