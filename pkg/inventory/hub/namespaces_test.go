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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestSeveralNamespacesAreReadAndNoOthers(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	in := func(namespace, name string) *inventory.Profile {
		p := profile(name, "1")
		p.Namespace = namespace
		return p
	}
	g.Expect(c.Create(in("default", "a"), in("kube-public", "b"), in("kube-system", "c"))).To(Succeed())
	roll := run(t, c, hub.Options{Namespace: "default", Namespaces: []string{"kube-public", "default"}})
	g.Eventually(roll.synced).WithTimeout(patience).Should(BeTrue())
	g.Expect(roll.content()).To(Equal("default/a=1 kube-public/b=1"))
	g.Expect(c.Requests("watch", "clusterprofiles")).To(Equal(2), "one for each namespace")
}

func TestTheHubSelectsByFields(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	g.Expect(c.Create(profile("a", "1"), profile("b", "1"))).To(Succeed())
	roll := run(t, c, hub.Options{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, "b")})
	g.Eventually(roll.synced).WithTimeout(patience).Should(BeTrue())
	g.Expect(roll.content()).To(Equal("default/b=1"))
}

func TestTheClusterSetOfANamespaceIsConveyed(t *testing.T) {
	for _, tc := range []struct {
		name    string
		options hub.Options
		label   string
	}{
		{"all namespaces are read", hub.Options{}, inventory.LabelClusterSet},
		{"one namespace is read", hub.Options{Namespace: "default"}, inventory.LabelClusterSet},
		{"as the KEP spells the label", hub.Options{}, inventory.LabelClusterSetInKEP},
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
			pretends := profile("pretends", "1")
			pretends.Annotations = map[string]string{inventory.AnnotationNamespaceClusterSet: "other"}
			g.Expect(c.Create(profile("a", "1"), pretends)).To(Succeed())

			roll := run(t, c, tc.options)
			g.Eventually(roll.synced).WithTimeout(patience).Should(BeTrue())
			g.Expect(roll.set("a")()).To(Equal("production"), "from the first time that the profile is told of")
			g.Expect(roll.set("pretends")()).To(Equal("production"))

			label("staging")
			g.Eventually(roll.set("a")).WithTimeout(patience).Should(Equal("staging"))
			label("")
			g.Eventually(roll.set("a")).WithTimeout(patience).Should(BeEmpty())
			g.Eventually(roll.set("pretends")).WithTimeout(patience).Should(BeEmpty())
		})
	}
}

func TestWhoMayNotReadNamespacesDoesWithout(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	c.Fault(mctest.Forbidden.On("namespaces"))
	g.Expect(c.Create(profile("a", "1"))).To(Succeed())
	logs := &lines{}
	roll := run(t, c, hub.Options{Namespaces: []string{"default", "kube-public"}}, logs)
	g.Eventually(roll.synced).WithTimeout(patience).Should(BeTrue())
	g.Expect(roll.content()).To(Equal("default/a=1"))
	g.Expect(strings.Count(logs.text(), "Not allowed to list and watch namespaces")).To(Equal(1))
}
