// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// Synthetic is the content of a profile for a cluster that no hub lists; see
// Synthesize.
type Synthetic struct {
	// ClusterName is the cluster's name in its source, such as a kubeconfig
	// context. It may be any text. Required.
	ClusterName string

	// Manager is the name of the cluster manager, such as "kind". It must be valid
	// as a label value (KEP-4322). Required.
	Manager string

	// Namespace of the profile. Defaults to "default".
	Namespace string

	// Name of the profile, a DNS-1123 subdomain. Defaults to
	// ProfileName(ClusterName).
	Name string

	// DisplayName is the name for people. Defaults to ClusterName.
	DisplayName string

	// Labels and Annotations of the profile, besides those that Synthesize adds.
	Labels, Annotations map[string]string

	// ClusterID and ClusterSet become properties (KEP-2149). The best ID is the
	// UID of the cluster's namespace kube-system. Default to none.
	ClusterID, ClusterSet string

	// Properties of the cluster by name, besides ID and ClusterSet. Names have 1
	// to 253 characters, values 1 to 1024 (KEP-4322).
	Properties map[string]string

	// KubernetesVersion of the cluster. Defaults to none.
	KubernetesVersion string

	// Conditions of the cluster. Each needs a reason. A condition without a
	// transition time gets that of Previous if its status is the same, else Now.
	Conditions []metav1.Condition

	// AccessProviders are the ways to reach the cluster (KEP-5339). They must not
	// contain secrets, only references to them.
	AccessProviders []AccessProvider

	// Previous is the last result of Synthesize for this cluster. Unchanged
	// properties and conditions keep their times, so that an unchanged profile is
	// equal to it. Defaults to none.
	Previous *Profile

	// Now is the time of changes. Defaults to the current time.
	Now time.Time
}

// Synthesize returns a profile that is valid for the API of KEP-4322, including
// its status, or the errors of Validate. ClusterName returns s.ClusterName for it.
// It shares no memory with s.
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
			Namespace:   cmp.Or(s.Namespace, metav1.NamespaceDefault),
			Name:        cmp.Or(s.Name, ProfileName(s.ClusterName)),
			Labels:      withEntry(s.Labels, v1alpha1.LabelClusterManagerKey, s.Manager),
			Annotations: withEntry(s.Annotations, AnnotationClusterName, s.ClusterName),
		},
		Spec: v1alpha1.ClusterProfileSpec{
			DisplayName:    cmp.Or(s.DisplayName, s.ClusterName),
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
	// The API requires a list, even an empty one.
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

// properties returns all properties, sorted by name.
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

// withEntry returns a copy of the map with the entry.
func withEntry(values map[string]string, key, value string) map[string]string {
	all := make(map[string]string, len(values)+1)
	maps.Copy(all, values)
	all[key] = value
	return all
}
