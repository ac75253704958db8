// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

const (
	// ConditionControlPlaneHealthy reports whether the cluster's control plane is
	// healthy (KEP-4322).
	ConditionControlPlaneHealthy = v1alpha1.ClusterConditionControlPlaneHealthy

	// ConditionJoined reports whether the cluster has joined its manager (KEP-4322).
	ConditionJoined = "Joined"
)

// HealthStatus is a cluster's health as its cluster manager reports it.
type HealthStatus string

const (
	// Healthy means that the control plane is healthy, and that no condition
	// reports that the cluster has not joined.
	Healthy HealthStatus = "Healthy"

	// Unhealthy means that the control plane is not healthy, or that the cluster
	// has not joined.
	Unhealthy HealthStatus = "Unhealthy"

	// HealthUnknown means that the manager does not report or know the health.
	HealthUnknown HealthStatus = "Unknown"
)

// Health is a HealthStatus and the condition that it comes from.
type Health struct {
	// Status is the result.
	Status HealthStatus

	// Condition is the type of the condition that decided.
	Condition string

	// Reason is the reason of that condition, or "NotReported" if the profile
	// does not have it.
	Reason string

	// Message is the message of that condition. It may be empty.
	Message string
}

// String returns the status and its reason, as in "Unhealthy (EtcdDown)".
func (h Health) String() string {
	if h.Reason == "" {
		return string(h.Status)
	}
	return string(h.Status) + " (" + h.Reason + ")"
}

// HealthOf reads the conditions ControlPlaneHealthy and Joined (KEP-4322). The
// cluster is Unhealthy if either is False. It is Healthy if ControlPlaneHealthy
// is True and Joined is True or missing, as not every manager reports Joined.
// In all other cases the health is HealthUnknown.
func HealthOf(profile *Profile) Health {
	controlPlane := meta.FindStatusCondition(profile.Status.Conditions, ConditionControlPlaneHealthy)
	joined := meta.FindStatusCondition(profile.Status.Conditions, ConditionJoined)
	switch {
	case controlPlane != nil && controlPlane.Status == metav1.ConditionFalse:
		return healthFrom(Unhealthy, controlPlane)
	case joined != nil && joined.Status == metav1.ConditionFalse:
		return healthFrom(Unhealthy, joined)
	case controlPlane == nil:
		return Health{Status: HealthUnknown, Condition: ConditionControlPlaneHealthy, Reason: "NotReported"}
	case controlPlane.Status != metav1.ConditionTrue:
		return healthFrom(HealthUnknown, controlPlane)
	case joined != nil && joined.Status != metav1.ConditionTrue:
		return healthFrom(HealthUnknown, joined)
	default:
		return healthFrom(Healthy, controlPlane)
	}
}

func healthFrom(status HealthStatus, condition *metav1.Condition) Health {
	return Health{Status: status, Condition: condition.Type, Reason: condition.Reason, Message: condition.Message}
}
