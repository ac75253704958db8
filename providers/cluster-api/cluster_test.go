// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // for servers that serve only this version
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

func TestFacts(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	deleted := metav1.ObjectMeta{DeletionTimestamp: &now}
	deleting := []metav1.Condition{{Type: "Deleting", Status: "True", Reason: "WaitingForInfrastructureDeletion"}}
	healthy := []metav1.Condition{{Type: inventory.ConditionControlPlaneHealthy, Status: "True", Reason: "Available", LastTransitionTime: now}}
	for _, test := range []struct {
		name   string
		object client.Object
		want   facts
	}{
		{"a new Cluster", &clusterv1.Cluster{}, facts{}},
		{"an initialized one", &clusterv1.Cluster{
			Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{Version: "v1.36.0"}},
			Status: clusterv1.ClusterStatus{
				Initialization: clusterv1.ClusterInitializationStatus{ControlPlaneInitialized: ptr.To(true)},
				Conditions:     []metav1.Condition{{Type: "ControlPlaneAvailable", Status: "True", Reason: "Available", LastTransitionTime: now}},
			},
		}, facts{initialized: true, version: "v1.36.0", conditions: healthy}},
		{"one that says it is not", &clusterv1.Cluster{Status: clusterv1.ClusterStatus{
			Initialization: clusterv1.ClusterInitializationStatus{ControlPlaneInitialized: ptr.To(false)},
		}}, facts{}},
		{"one that is upgraded", &clusterv1.Cluster{
			Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{Version: "v1.36.0"}},
			Status: clusterv1.ClusterStatus{ControlPlane: &clusterv1.ClusterControlPlaneStatus{
				Versions: []clusterv1.StatusVersion{{Version: "v1.10.0"}, {Version: "v1.9.1"}, {Version: "?"}},
			}},
		}, facts{version: "v1.9.1"}},
		{"one without a control plane", &clusterv1.Cluster{ObjectMeta: deleted, Status: clusterv1.ClusterStatus{Conditions: deleting}}, facts{gone: true}},
		{"one whose condition is left from before", &clusterv1.Cluster{Status: clusterv1.ClusterStatus{Conditions: deleting}}, facts{}},
		{"v1beta1 of an old release", &clusterv1beta1.Cluster{
			Spec: clusterv1beta1.ClusterSpec{Topology: &clusterv1beta1.Topology{Version: "v1.29.0"}},
			Status: clusterv1beta1.ClusterStatus{Conditions: clusterv1beta1.Conditions{
				{Type: "ControlPlaneInitialized", Status: "True"}, {Type: "ControlPlaneReady", Status: "True", LastTransitionTime: now},
			}},
		}, facts{initialized: true, version: "v1.29.0", conditions: []metav1.Condition{
			{Type: inventory.ConditionControlPlaneHealthy, Status: "True", Reason: "ControlPlaneReady", LastTransitionTime: now},
		}}},
		{"v1beta1 of a later release", &clusterv1beta1.Cluster{
			ObjectMeta: deleted,
			Status:     clusterv1beta1.ClusterStatus{ControlPlaneReady: true, V1Beta2: &clusterv1beta1.ClusterV1Beta2Status{Conditions: deleting}},
		}, facts{initialized: true, gone: true}},
		{"another type", &metav1.PartialObjectMetadata{ObjectMeta: deleted}, facts{initialized: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(factsOf(test.object)).To(Equal(test.want))
		})
	}
}

// An object that does not fit its type affects no other.
func TestObjectThatDoesNotFit(t *testing.T) {
	g := NewWithT(t)
	_, kinds, err := versions(nil, clusterScheme)
	g.Expect(err).NotTo(HaveOccurred())
	u := clusterObject(map[string]any{"paused": "no"})
	decoded, err := kinds.decode(u)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kinds.fits(decoded.(client.Object))).To(BeFalse())
	decoded, err = kinds.decode(clusterObject(map[string]any{"paused": true}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kinds.fits(decoded.(client.Object))).To(BeTrue())
	g.Expect(decoded.(*clusterv1.Cluster).Spec.Paused).To(HaveValue(BeTrue()))
	g.Expect(decoded.(client.Object).GetManagedFields()).To(BeEmpty())
}

func clusterObject(spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "a"}})
	return u
}
