// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "example.rollcall.dev", Version: "v1"}

// Rollout is an object of the hub: a Deployment for some members. The Deployments have
// its namespace and name. crd.yaml defines it.
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              struct {
		ClusterSelector metav1.LabelSelector `json:"clusterSelector"` // of the labels of ClusterProfiles
		Deployment      runtime.RawExtension `json:"deployment"`      // the spec; not typed, as its zero values must not be applied
	} `json:"spec"`
	Status struct {
		// Clusters has every member that may have the Deployment. A member is added before
		// anything is written there, and removed when the Deployment is gone.
		Clusters []ClusterStatus `json:"clusters,omitempty"`
	} `json:"status,omitzero"`
}

// ClusterStatus is the state of a Rollout in a member.
type ClusterStatus struct {
	Name              string `json:"name"`
	Generation        int64  `json:"generation,omitempty"` // of the Rollout that was applied last
	AvailableReplicas int64  `json:"availableReplicas,omitempty"`
	Error             string `json:"error,omitempty"`
}

// cluster returns the index of a member's status, or -1.
func (r *Rollout) cluster(name string) int {
	return slices.IndexFunc(r.Status.Clusters, func(c ClusterStatus) bool { return c.Name == name })
}

// DeepCopyObject implements runtime.Object.
func (r *Rollout) DeepCopyObject() runtime.Object {
	out := *r
	r.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	r.Spec.ClusterSelector.DeepCopyInto(&out.Spec.ClusterSelector)
	r.Spec.Deployment.DeepCopyInto(&out.Spec.Deployment)
	out.Status.Clusters = slices.Clone(r.Status.Clusters)
	return &out
}

// RolloutList is a list of Rollouts.
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Rollout `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *RolloutList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Rollout, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Rollout)
	}
	return &out
}
