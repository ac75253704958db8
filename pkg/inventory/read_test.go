// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

func TestTheClusterSetIsReadWhereItIsMostReliable(t *testing.T) {
	property := v1alpha1.Property{Name: PropertyClusterSet, Value: "property"}
	for _, tc := range []struct {
		name    string
		profile Profile
		want    string
	}{
		{"nothing says so", Profile{}, ""},
		{"the property comes first", Profile{
			ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{AnnotationNamespaceClusterSet: "namespace"},
				Labels:      map[string]string{LabelClusterSet: "label"},
			},
			Status: v1alpha1.ClusterProfileStatus{Properties: []v1alpha1.Property{property}},
		}, "property"},
		{"then the label of the namespace", Profile{
			ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{AnnotationNamespaceClusterSet: "namespace"},
				Labels:      map[string]string{LabelClusterSet: "label"},
			},
		}, "namespace"},
		{"then that of the profile", Profile{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelClusterSet: "label", LabelClusterSetInKEP: "other"}},
		}, "label"},
		{"also as the KEP spells it", Profile{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelClusterSetInKEP: "label"}},
		}, "label"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(ClusterSet(&tc.profile)).To(Equal(tc.want))
		})
	}
}

func TestHealth(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return Condition(conditionType, status, conditionType+string(status), "")
	}
	for _, tc := range []struct {
		name       string
		conditions []metav1.Condition
		want       HealthStatus
		reason     string
	}{
		{"without conditions nothing is known", nil, HealthUnknown, "NotReported"},
		{"joined alone says nothing of the control plane",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionTrue)}, HealthUnknown, "NotReported"},
		{"not every manager reports Joined",
			[]metav1.Condition{condition(ConditionControlPlaneHealthy, metav1.ConditionTrue)}, Healthy, "ControlPlaneHealthyTrue"},
		{"healthy and joined",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionTrue), condition(ConditionControlPlaneHealthy, metav1.ConditionTrue)},
			Healthy, "ControlPlaneHealthyTrue"},
		{"healthy and not joined",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionFalse), condition(ConditionControlPlaneHealthy, metav1.ConditionTrue)},
			Unhealthy, "JoinedFalse"},
		{"unhealthy is worse than not joined",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionFalse), condition(ConditionControlPlaneHealthy, metav1.ConditionFalse)},
			Unhealthy, "ControlPlaneHealthyFalse"},
		{"not joined is worse than unknown",
			[]metav1.Condition{condition(ConditionJoined, metav1.ConditionFalse), condition(ConditionControlPlaneHealthy, metav1.ConditionUnknown)},
			Unhealthy, "JoinedFalse"},
		{"the manager does not know",
			[]metav1.Condition{condition(ConditionControlPlaneHealthy, metav1.ConditionUnknown)}, HealthUnknown, "ControlPlaneHealthyUnknown"},
		{"the manager does not know whether it has joined",
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
	g.Expect(err).NotTo(HaveOccurred(), "as /version has it with some vendors")
	g.Expect(v.Minor()).To(Equal(uint(36)))
}

func withVersion(text string) *Profile {
	return &Profile{Status: v1alpha1.ClusterProfileStatus{Version: v1alpha1.ClusterVersion{Kubernetes: text}}}
}
