// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // for servers that serve only this version
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// facts are what decides about a cluster, and what its profile shows.
type facts struct {
	initialized bool   // the control plane has been ready once
	gone        bool   // the cluster is being deleted and has no control plane any more
	version     string // of Kubernetes, "" if unknown
	conditions  []metav1.Condition
}

// factsOf returns the facts of a Cluster. An object of another type is initialized.
func factsOf(object client.Object) facts {
	if u, ok := object.(*unstructured.Unstructured); ok {
		object = typed(u)
	}
	switch c := object.(type) {
	case *clusterv1.Cluster:
		initialized := c.Status.Initialization.ControlPlaneInitialized
		return facts{
			initialized: initialized != nil && *initialized || meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition),
			gone:        isGone(c, c.Status.Conditions),
			version:     cmp.Or(lowestVersion(c.Status.ControlPlane), c.Spec.Topology.Version),
			conditions:  health(meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterControlPlaneAvailableCondition)),
		}
	case *clusterv1beta1.Cluster:
		return factsOfV1beta1(c)
	}
	return facts{initialized: true}
}

func factsOfV1beta1(c *clusterv1beta1.Cluster) facts {
	var conditions []metav1.Condition // empty before Cluster API v1.9
	if c.Status.V1Beta2 != nil {
		conditions = c.Status.V1Beta2.Conditions
	}
	f := facts{initialized: c.Status.ControlPlaneReady, gone: isGone(c, conditions)}
	if c.Spec.Topology != nil {
		f.version = c.Spec.Topology.Version
	}
	available := meta.FindStatusCondition(conditions, clusterv1.ClusterControlPlaneAvailableCondition)
	for _, condition := range c.Status.Conditions {
		switch condition.Type {
		case clusterv1beta1.ControlPlaneInitializedCondition:
			f.initialized = f.initialized || condition.Status == "True"
		case clusterv1beta1.ControlPlaneReadyCondition:
			available = cmp.Or(available, &metav1.Condition{
				Status: metav1.ConditionStatus(condition.Status), Message: condition.Message, LastTransitionTime: condition.LastTransitionTime,
				Reason: cmp.Or(condition.Reason, string(clusterv1beta1.ControlPlaneReadyCondition)),
			})
		}
	}
	f.conditions = health(available)
	return f
}

// isGone reports whether the control plane of a cluster was deleted.
func isGone(object client.Object, conditions []metav1.Condition) bool {
	deleting := meta.FindStatusCondition(conditions, clusterv1.ClusterDeletingCondition)
	if object.GetDeletionTimestamp() == nil || deleting == nil {
		return false
	}
	return deleting.Reason == clusterv1.ClusterDeletingWaitingForInfrastructureDeletionReason ||
		deleting.Reason == clusterv1.ClusterDeletingDeletionCompletedReason
}

// health returns a condition of Cluster API as that of a profile.
func health(condition *metav1.Condition) []metav1.Condition {
	if condition == nil {
		return nil
	}
	return []metav1.Condition{{
		Type: inventory.ConditionControlPlaneHealthy, Status: condition.Status, Reason: condition.Reason,
		Message: condition.Message, LastTransitionTime: condition.LastTransitionTime,
	}}
}

// lowestVersion returns the version that all servers of a control plane have at least.
func lowestVersion(status *clusterv1.ClusterControlPlaneStatus) (text string) {
	if status == nil {
		return ""
	}
	var lowest *version.Version
	for _, v := range status.Versions {
		parsed, err := version.ParseGeneric(v.Version)
		if err == nil && (lowest == nil || parsed.LessThan(lowest)) {
			text, lowest = v.Version, parsed
		}
	}
	return text
}
