// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// DefaultNamespace is the namespace of synthetic profiles that name none.
const DefaultNamespace = metav1.NamespaceDefault

// Synthetic says what is in a profile that is made by a program, for a cluster
// of which no hub has one: see Synthesize.
type Synthetic struct {
	// ClusterName is the name that the source itself uses for the cluster, such
	// as a kubeconfig's context. Required; any text will do.
	ClusterName string

	// Manager is the name of what manages the cluster, such as "kind". Required;
	// it must have the form of a label's value (KEP-4322).
	Manager string

	// Namespace of the profile. Defaults to DefaultNamespace.
	Namespace string

	// Name of the profile, a DNS-1123 subdomain. Defaults to
	// ProfileName(ClusterName).
	Name string

	// DisplayName is for people. Defaults to ClusterName.
	DisplayName string

	// Labels and Annotations of the profile, besides those that Synthesize sets.
	Labels, Annotations map[string]string

	// ClusterID and ClusterSet become properties (KEP-2149). The ID is best the
	// UID of the cluster's namespace kube-system. Default to none.
	ClusterID, ClusterSet string

	// Properties of the cluster by name, besides ID and ClusterSet. Names have at
	// most 253 and values at most 1024 characters (KEP-4322), none is empty.
	Properties map[string]string

	// KubernetesVersion that the cluster runs. Defaults to none.
	KubernetesVersion string

	// Conditions of the cluster; Condition makes one. Each needs a reason. One
	// without a time gets that of Previous if its status is as it was there, and
	// Now otherwise.
	Conditions []metav1.Condition

	// AccessProviders say how the cluster is reached (KEP-5339). They hold no
	// secret, only references to one.
	AccessProviders []AccessProvider

	// Previous is the profile as it was made the last time. What is as it was
	// keeps its time, so that a profile of which nothing has changed is equal to
	// the one before. Defaults to none.
	Previous *Profile

	// Now is the time of what has changed. Defaults to the current time.
	Now time.Time
}

// Condition returns a condition for Synthetic. The reason is one word in
// CamelCase; the message may be empty.
func Condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// Synthesize makes a profile that the API of KEP-4322 accepts as it is, status
// included. Its cluster name, as ClusterName tells, is s.ClusterName. Nothing
// of s is shared with it.
//
// The error tells of everything that an API server would reject, and of what
// looks like a secret: see Validate.
func Synthesize(s Synthetic) (*Profile, error) {
	if s.ClusterName == "" {
		return nil, errors.New("synthetic profile: must specify ClusterName")
	}
	now := s.Now
	if now.IsZero() {
		now = time.Now()
	}
	profile := &Profile{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ClusterProfile"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   orDefault(s.Namespace, DefaultNamespace),
			Name:        orDefault(s.Name, ProfileName(s.ClusterName)),
			Labels:      with(s.Labels, v1alpha1.LabelClusterManagerKey, s.Manager),
			Annotations: with(s.Annotations, AnnotationClusterName, s.ClusterName),
		},
		Spec: v1alpha1.ClusterProfileSpec{
			DisplayName:    orDefault(s.DisplayName, s.ClusterName),
			ClusterManager: v1alpha1.ClusterManager{Name: s.Manager},
		},
		Status: v1alpha1.ClusterProfileStatus{
			Version: v1alpha1.ClusterVersion{Kubernetes: s.KubernetesVersion},
		},
	}
	profile.Status.Conditions = s.conditions(metav1.NewTime(now).Rfc3339Copy())
	profile.Status.Properties = s.properties(metav1.NewTime(now).Rfc3339Copy())
	for i := range s.AccessProviders {
		profile.Status.AccessProviders = append(profile.Status.AccessProviders, *s.AccessProviders[i].DeepCopy())
	}
	if err := Validate(profile); err != nil {
		return nil, fmt.Errorf("synthetic profile of cluster %q: %w", s.ClusterName, err)
	}
	return profile, nil
}

func (s *Synthetic) conditions(now metav1.Time) []metav1.Condition {
	// The API wants a list, be it empty.
	conditions := make([]metav1.Condition, 0, len(s.Conditions))
	for _, condition := range s.Conditions {
		if condition.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = now
			if s.Previous != nil {
				before := meta.FindStatusCondition(s.Previous.Status.Conditions, condition.Type)
				if before != nil && before.Status == condition.Status {
					condition.LastTransitionTime = before.LastTransitionTime
				}
			}
		}
		conditions = append(conditions, condition)
	}
	return conditions
}

// properties returns all properties in the order of their names.
func (s *Synthetic) properties(now metav1.Time) []v1alpha1.Property {
	values := maps.Clone(s.Properties)
	if values == nil {
		values = map[string]string{}
	}
	if s.ClusterID != "" {
		values[PropertyClusterID] = s.ClusterID
	}
	if s.ClusterSet != "" {
		values[PropertyClusterSet] = s.ClusterSet
	}
	before := map[string]v1alpha1.Property{}
	if s.Previous != nil {
		for _, property := range s.Previous.Status.Properties {
			before[property.Name] = property
		}
	}
	var properties []v1alpha1.Property
	for _, name := range slices.Sorted(maps.Keys(values)) {
		property := v1alpha1.Property{Name: name, Value: values[name], LastObservedTime: now}
		if same, ok := before[name]; ok && same.Value == property.Value && !same.LastObservedTime.IsZero() {
			property.LastObservedTime = same.LastObservedTime
		}
		properties = append(properties, property)
	}
	return properties
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

func with(values map[string]string, key, value string) map[string]string {
	all := make(map[string]string, len(values)+1)
	maps.Copy(all, values)
	all[key] = value
	return all
}
