// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
)

func TestScopeMustBeDecided(t *testing.T) {
	someCache := struct{ cache.Informers }{}
	selector := labels.SelectorFromSet(labels.Set{"env": "test"})
	for _, tc := range []struct {
		name    string
		options hub.Options
		want    string
	}{
		{"nothing", hub.Options{}, "must specify Namespaces: one namespace is one inventory; to read all, set it to []string{metav1.NamespaceAll}"},
		{"only a selector", hub.Options{LabelSelector: selector}, "must specify Namespaces"},
		{"only a placement", hub.Options{Placement: &hub.Placement{Namespace: "fleet", Name: "x"}}, "must specify Namespaces"},
		{"a cache that is not used", hub.Options{Cache: someCache, LabelSelector: selector}, "as the cache is not used then"},
		{"a namespace", hub.Options{Namespace: "fleet"}, ""},
		{"all namespaces", hub.Options{Namespaces: []string{metav1.NamespaceAll}, LabelSelector: selector}, ""},
		{"a cache", hub.Options{Cache: someCache}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := hub.New(&rest.Config{Host: "https://hub.example"}, tc.options)
			if tc.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			}
		})
	}
}

func TestScopeOfCacheIsLogged(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	for _, tc := range []struct {
		name    string
		options cache.Options
		want    int
	}{
		{"no namespaces", cache.Options{}, 1},
		{"some namespaces", cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}}, 0},
		{"all namespaces, explicitly", cache.Options{DefaultNamespaces: map[string]cache.Config{metav1.NamespaceAll: {}}}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			c := newHub(t)
			tc.options.Scheme = scheme
			informers := newCache(t, c, tc.options)
			mctest.StartManager(t, informers)
			logs := &logBuffer{}
			sink := run(t, c, hub.Options{Cache: informers}, logs)
			g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
			g.Expect(strings.Count(logs.text(), "DefaultNamespaces")).To(Equal(tc.want))
		})
	}
}

func TestAliasIsLoggedOncePerManager(t *testing.T) {
	g := NewWithT(t)
	c := newHub(t)
	write := func(name, manager, property string) {
		p := profile(name, "1")
		p.Spec.ClusterManager.Name = manager
		g.Expect(c.Create(p)).To(Succeed())
		p.Status.Properties = []v1alpha1.Property{{Name: property, Value: "id-of-" + name}}
		g.Expect(c.UpdateStatus(p)).To(Succeed())
	}
	write("a", "first", inventory.PropertyClusterIDAlias)
	write("b", "first", inventory.PropertyClusterIDAlias)
	write("c", "second", inventory.PropertyClusterIDAlias)
	write("d", "third", inventory.PropertyClusterID)
	logs := &logBuffer{}
	sink := run(t, c, hub.Options{Namespace: "default"}, logs)
	g.Eventually(sink.synced).WithTimeout(timeout).Should(BeTrue())
	g.Expect(inventory.ClusterID(sink.profile("default/b"))).To(Equal("id-of-b"))
	for manager, lines := range map[string]int{"first": 1, "second": 1, "third": 0} {
		g.Expect(strings.Count(logs.text(), `"clusterManager"="`+manager+`"`)).To(Equal(lines), manager)
	}
}
