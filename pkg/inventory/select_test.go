// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

func TestSelection(t *testing.T) {
	cluster := &Profile{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"tier": "gold"}},
		Status: v1alpha1.ClusterProfileStatus{
			Version:    v1alpha1.ClusterVersion{Kubernetes: "v1.36.0-gke.1"},
			Conditions: []metav1.Condition{{Type: ConditionControlPlaneHealthy, Status: metav1.ConditionTrue}},
			Properties: []v1alpha1.Property{
				{Name: PropertyClusterSet, Value: "production"},
				{Name: "region", Value: "eu west, zone 1"},
				{Name: "memory", Value: "64Gi"},
			},
		},
	}
	property := func(name string, operator PropertyOperator, values ...string) Selection {
		return Selection{Properties: []PropertyExpression{{Name: name, Operator: operator, Values: values}}}
	}
	versions := func(atLeast, below string) Selection {
		return Selection{KubernetesVersion: VersionRange{AtLeast: atLeast, Below: below}}
	}
	for _, tc := range []struct {
		name      string
		selection Selection
		want      bool
	}{
		{"the zero value selects all", Selection{}, true},
		{"by labels", Selection{Labels: labels.SelectorFromSet(labels.Set{"tier": "gold"})}, true},
		{"by other labels", Selection{Labels: labels.SelectorFromSet(labels.Set{"tier": "iron"})}, false},
		{"by ClusterSet", Selection{ClusterSets: []string{"test", "production"}}, true},
		{"by another ClusterSet", Selection{ClusterSets: []string{"test"}}, false},
		{"by health", Selection{Health: []HealthStatus{Healthy}}, true},
		{"by other health", Selection{Health: []HealthStatus{Unhealthy, HealthUnknown}}, false},
		{"property in", property("region", PropertyIn, "us", "eu west, zone 1"), true},
		{"property not in", property("region", PropertyNotIn, "us"), true},
		{"missing property not in", property("zone", PropertyNotIn, "us"), true},
		{"missing property in", property("zone", PropertyIn, ""), false},
		{"property exists", property("region", PropertyExists), true},
		{"property does not exist", property("region", PropertyDoesNotExist), false},
		{"property above", property("memory", PropertyGreaterThan, "60000Mi"), true},
		{"property not above itself", property("memory", PropertyGreaterThan, "64Gi"), false},
		{"property below", property("memory", PropertyLessThan, "1Ti"), true},
		{"property that is not a quantity", property("region", PropertyLessThan, "1Ti"), false},
		{"missing property below", property("cpu", PropertyLessThan, "1"), false},
		{"version in the range", versions("1.35", "v1.37"), true},
		{"a vendor's suffix is not a pre-release", versions("1.36.0", ""), true},
		{"version above the range", versions("", "1.36"), false},
		{"version below the range", versions("1.36.1", ""), false},
		{"all fields must match", Selection{
			ClusterSets: []string{"production"}, Health: []HealthStatus{Unhealthy},
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			matches, err := tc.selection.Predicate()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(matches(cluster)).To(Equal(tc.want))
		})
	}

	t.Run("expensive quantities do not match", func(t *testing.T) {
		g := NewWithT(t)
		matches, err := property("size", PropertyGreaterThan, "1").Predicate()
		g.Expect(err).NotTo(HaveOccurred())
		for text, want := range map[string]bool{
			"1e3": true, "+2.5Gi": true, "100m": false, "-4": false, "1E2": true, "": false,
			"1e999999999": false, "1e-999999999": false, strings.Repeat("9", 1024): false,
		} {
			profile := &Profile{}
			profile.Status.Properties = []v1alpha1.Property{{Name: "size", Value: text}}
			g.Expect(matches(profile)).To(Equal(want), text)
		}
	})
	t.Run("an unknown version is in no range", func(t *testing.T) {
		g := NewWithT(t)
		matches, err := versions("1.0", "").Predicate()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(matches(&Profile{})).To(BeFalse())
	})
}

func TestInvalidSelection(t *testing.T) {
	property := func(name string, operator PropertyOperator, values ...string) Selection {
		return Selection{Properties: []PropertyExpression{{Name: name, Operator: operator, Values: values}}}
	}
	for _, tc := range []struct {
		name      string
		selection Selection
		want      string
	}{
		{"property without a name", property("", PropertyExists), "name must not be empty"},
		{"in nothing", property("a", PropertyIn), "needs values"},
		{"exists with values", property("a", PropertyExists, "b"), "takes no values"},
		{"above several values", property("a", PropertyGreaterThan, "1", "2"), "takes one value"},
		{"above an invalid quantity", property("a", PropertyGreaterThan, "many"), `"many"`},
		{"unknown operator", property("a", "Like", "b"), `unknown operator "Like"`},
		{"ClusterSet without a name", Selection{ClusterSets: []string{""}}, "ClusterSet must not be empty"},
		{"unknown health", Selection{Health: []HealthStatus{"Fine"}}, `unknown health "Fine"`},
		{"invalid lower limit", Selection{KubernetesVersion: VersionRange{AtLeast: "new"}}, `"new"`},
		{"invalid upper limit", Selection{KubernetesVersion: VersionRange{Below: "old"}}, `"old"`},
		{"empty range", Selection{KubernetesVersion: VersionRange{AtLeast: "1.36", Below: "1.36.0"}}, "no version"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := tc.selection.Predicate()
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestSelectFollowsChanges(t *testing.T) {
	g := NewWithT(t)
	sink := &eventLog{}
	version := func(v string) *Profile {
		p := named("a")
		p.Labels = map[string]string{"version": v}
		return p
	}
	s := &selectSink{Sink: sink, predicates: []Predicate{isVersion1}}
	s.Put(version("1"))
	s.Put(version("2"))
	s.Put(version("1"))
	s.Remove(KeyOf(version("1")))
	s.Synced()
	g.Expect(sink.calls).To(Equal([]string{"put a", "remove a", "put a", "remove a", "synced"}))
}
