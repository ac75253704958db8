// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

func TestClusterSet(t *testing.T) {
	property := v1alpha1.Property{Name: PropertyClusterSet, Value: "property"}
	for _, tc := range []struct {
		name    string
		profile Profile
		want    string
	}{
		{"none", Profile{}, ""},
		{"the property comes first", Profile{
			ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{AnnotationNamespaceClusterSet: "namespace"},
				Labels:      map[string]string{v1alpha1.LabelClusterSetKey: "label"},
			},
			Status: v1alpha1.ClusterProfileStatus{Properties: []v1alpha1.Property{property}},
		}, "property"},
		{"then the namespace's label", Profile{
			ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{AnnotationNamespaceClusterSet: "namespace"},
				Labels:      map[string]string{v1alpha1.LabelClusterSetKey: "label"},
			},
		}, "namespace"},
		{"then the profile's label", Profile{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelClusterSetKey: "label", "clusterset.multicluster.x-k8s.io": "other"}},
		}, "label"},
		{"the label as spelled in the KEP", Profile{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"clusterset.multicluster.x-k8s.io": "label"}},
		}, "label"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(ClusterSet(&tc.profile)).To(Equal(tc.want))
		})
	}
}

func TestHealth(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: conditionType + string(status)}
	}
	for _, tc := range []struct {
		name       string
		conditions []metav1.Condition
		want       HealthStatus
		reason     string
	}{
		{"no conditions", nil, HealthUnknown, "NotReported"},
		{"only Joined",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionTrue)}, HealthUnknown, "NotReported"},
		{"only ControlPlaneHealthy",
			[]metav1.Condition{condition(ConditionControlPlaneHealthy, metav1.ConditionTrue)}, Healthy, "ControlPlaneHealthyTrue"},
		{"healthy and joined",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionTrue), condition(ConditionControlPlaneHealthy, metav1.ConditionTrue)},
			Healthy, "ControlPlaneHealthyTrue"},
		{"healthy and not joined",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionFalse), condition(ConditionControlPlaneHealthy, metav1.ConditionTrue)},
			Unhealthy, "JoinedFalse"},
		{"unhealthy before not joined",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionFalse), condition(ConditionControlPlaneHealthy, metav1.ConditionFalse)},
			Unhealthy, "ControlPlaneHealthyFalse"},
		{"not joined before unknown",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionFalse), condition(ConditionControlPlaneHealthy, metav1.ConditionUnknown)},
			Unhealthy, "JoinedFalse"},
		{"unknown to the manager",
			[]metav1.Condition{condition(ConditionControlPlaneHealthy, metav1.ConditionUnknown)}, HealthUnknown, "ControlPlaneHealthyUnknown"},
		{"unknown whether joined",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionUnknown), condition(ConditionControlPlaneHealthy, metav1.ConditionTrue)},
			HealthUnknown, "JoinedUnknown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			health := HealthOf(&Profile{Status: v1alpha1.ClusterProfileStatus{Conditions: tc.conditions}})
			g.Expect(health.Status).To(Equal(tc.want))
			g.Expect(health.Reason).To(Equal(tc.reason))
			g.Expect(health.String()).To(Equal(string(tc.want) + " (" + tc.reason + ")"))
		})
	}
}

func TestKubernetesVersion(t *testing.T) {
	g := NewWithT(t)
	_, err := KubernetesVersion(withVersion(""))
	g.Expect(err).To(MatchError(ErrNoVersion))
	_, err = KubernetesVersion(withVersion("latest"))
	g.Expect(err).To(HaveOccurred())
	for _, text := range []string{"v1.36.3", "1.36.3", "v1.36.3-gke.100", "v1.36.3+k3s1", "v1.36.3-eks-0f2e1"} {
		v, err := KubernetesVersion(withVersion(text))
		g.Expect(err).NotTo(HaveOccurred(), text)
		g.Expect(release(v).String()).To(Equal("1.36.3"), text)
	}
	v, err := KubernetesVersion(withVersion("1.36+"))
	g.Expect(err).NotTo(HaveOccurred(), "the form of /version at some vendors")
	g.Expect(v.Minor()).To(Equal(uint(36)))
}

func withVersion(text string) *Profile {
	return &Profile{Status: v1alpha1.ClusterProfileStatus{Version: v1alpha1.ClusterVersion{Kubernetes: text}}}
}
