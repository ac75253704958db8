// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

const (
	// ConditionControlPlaneHealthy says whether the cluster's control plane is
	// healthy (KEP-4322).
	ConditionControlPlaneHealthy = v1alpha1.ClusterConditionControlPlaneHealthy

	// ConditionJoined says whether the cluster has joined its manager (KEP-4322).
	ConditionJoined = "Joined"
)

// HealthStatus is what a profile's conditions say of its cluster.
type HealthStatus string

const (
	// Healthy: the control plane is healthy, and nothing says that the cluster
	// has not joined.
	Healthy HealthStatus = "Healthy"

	// Unhealthy: the control plane is not healthy, or the cluster has not joined.
	Unhealthy HealthStatus = "Unhealthy"

	// HealthUnknown: the manager does not say, or does not know.
	HealthUnknown HealthStatus = "Unknown"
)

// reasonNotReported is the reason where the manager says nothing of the control
// plane.
const reasonNotReported = "NotReported"

// Health is the health of a cluster in the eyes of its manager, and which
// condition says so. The zero value is not used.
type Health struct {
	// Status is the verdict.
	Status HealthStatus

	// Condition is the type of the condition that decided.
	Condition string

	// Reason is that condition's, for programs; "NotReported" where there is
	// no such condition.
	Reason string

	// Message is that condition's, for people. It may be empty.
	Message string
}

// String returns the verdict and its reason, as in "Unhealthy (EtcdDown)".
func (h Health) String() string {
	if h.Reason == "" {
		return string(h.Status)
	}
	return string(h.Status) + " (" + h.Reason + ")"
}

// HealthOf reads the conditions ControlPlaneHealthy and Joined (KEP-4322).
// Either of them False makes the cluster Unhealthy. It is Healthy when the
// former is True and the latter is True or missing: not every manager reports
// Joined. All else is HealthUnknown.
func HealthOf(profile *Profile) Health {
	controlPlane := meta.FindStatusCondition(profile.Status.Conditions, ConditionControlPlaneHealthy)
	joined := meta.FindStatusCondition(profile.Status.Conditions, ConditionJoined)
	switch {
	case controlPlane != nil && controlPlane.Status == metav1.ConditionFalse:
		return healthBy(Unhealthy, controlPlane)
	case joined != nil && joined.Status == metav1.ConditionFalse:
		return healthBy(Unhealthy, joined)
	case controlPlane == nil:
		return Health{Status: HealthUnknown, Condition: ConditionControlPlaneHealthy, Reason: reasonNotReported}
	case controlPlane.Status != metav1.ConditionTrue:
		return healthBy(HealthUnknown, controlPlane)
	case joined != nil && joined.Status != metav1.ConditionTrue:
		return healthBy(HealthUnknown, joined)
	default:
		return healthBy(Healthy, controlPlane)
	}
}

func healthBy(status HealthStatus, condition *metav1.Condition) Health {
	return Health{Status: status, Condition: condition.Type, Reason: condition.Reason, Message: condition.Message}
}
