// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	// FieldManager is the field manager of all writes.
	FieldManager = "rollcall-publish"

	// LabelPublisher is a label of all published profiles, with the value
	// FieldManager. A profile without it is never changed or removed: remove the
	// label to keep a profile that is no longer published.
	LabelPublisher = "rollcall.dev/publisher"
)

// notPublished are annotations of a source that have no meaning in the hub.
var notPublished = []string{
	inventory.AnnotationSource, inventory.AnnotationNamespaceClusterSet, inventory.AnnotationRenamedFrom,
	corev1.LastAppliedConfigAnnotation,
}

// observation is the last result of a probe that counts.
type observation struct {
	ProbeResult
	time time.Time
}

// isOwn reports whether the profile was published with this manager name.
func (o *Options) isOwn(profile *inventory.Profile) bool {
	return profile.Labels[LabelPublisher] == FieldManager && profile.Spec.ClusterManager.Name == o.ManagerName &&
		profile.Labels[v1alpha1.LabelClusterManagerKey] == o.ManagerName
}

// newProfile returns what every published profile has from its creation on.
func (o *Options) newProfile(name string) *inventory.Profile {
	return &inventory.Profile{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ClusterProfileKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: name,
			Labels: map[string]string{v1alpha1.LabelClusterManagerKey: o.ManagerName, LabelPublisher: FieldManager},
		},
		Spec: v1alpha1.ClusterProfileSpec{ClusterManager: v1alpha1.ClusterManager{Name: o.ManagerName}},
	}
}

// wanted returns the profile to publish for a profile of the source. current is the
// published one, or nil; what has not changed keeps its times, and what a probe has
// observed stays until a probe observes it again.
func (o *Options) wanted(source, current *inventory.Profile, observed *observation, now time.Time) *inventory.Profile {
	if !isOf(current, source) {
		current = &inventory.Profile{} // nothing is known of this cluster
	}
	p := o.newProfile(source.Name)
	p.Spec.DisplayName = source.Spec.DisplayName
	for key, value := range source.Labels {
		if _, ok := p.Labels[key]; !ok {
			p.Labels[key] = value
		}
	}
	p.Annotations = maps.Clone(source.Annotations)
	for _, key := range notPublished {
		delete(p.Annotations, key)
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[inventory.AnnotationClusterName] = inventory.ClusterName(source)

	p.Status.Version = source.Status.Version
	p.Status.AccessProviders = inventory.AccessProviders(source)
	p.Status.Properties = slices.Clone(source.Status.Properties)
	id := inventory.ClusterID(source)
	if id == "" && o.Probe != nil {
		if observed != nil {
			id = observed.ClusterID
		}
		if id = cmp.Or(id, inventory.ClusterID(current)); id != "" {
			p.Status.Properties = append(p.Status.Properties, v1alpha1.Property{Name: inventory.PropertyClusterID, Value: id})
		}
	}
	if _, ok := inventory.Property(source, inventory.PropertyClusterSet); !ok {
		if set := inventory.ClusterSet(source); set != "" { // by a label of the source's namespace
			p.Status.Properties = append(p.Status.Properties, v1alpha1.Property{Name: inventory.PropertyClusterSet, Value: set})
		}
	}
	if p.Labels[inventory.LabelMemberID] == "" && id != "" {
		p.Labels[inventory.LabelMemberID] = memberID(id)
	}
	if o.Probe != nil {
		version := ""
		if observed != nil {
			version = observed.KubernetesVersion
		}
		p.Status.Version.Kubernetes = cmp.Or(version, current.Status.Version.Kubernetes, source.Status.Version.Kubernetes)
	}
	o.setPropertyTimes(p, current, observed, now)
	p.Status.Conditions = o.conditions(source, current, observed, now)
	return p
}

// isOf reports whether the published profile is of the source's cluster.
func isOf(published, source *inventory.Profile) bool {
	return published != nil && published.Annotations[inventory.AnnotationClusterName] == inventory.ClusterName(source)
}

// memberID returns the ID as a label value.
func memberID(id string) string {
	if len(validation.IsValidLabelValue(id)) == 0 {
		return id
	}
	return inventory.ProfileName(id)
}

// setPropertyTimes sets the times at which the properties were observed: by a probe
// that has succeeded, else by the source. Between heartbeats, they stay as published.
func (o *Options) setPropertyTimes(p, current *inventory.Profile, observed *observation, now time.Time) {
	before := map[string]v1alpha1.Property{}
	for _, property := range current.Status.Properties {
		before[property.Name] = property
	}
	for i := range p.Status.Properties {
		property := &p.Status.Properties[i]
		at := property.LastObservedTime.Time
		if observed != nil && observed.Status == metav1.ConditionTrue && observed.time.After(at) {
			at = observed.time
		}
		same, ok := before[property.Name]
		switch {
		case ok && same.Value == property.Value && !same.LastObservedTime.IsZero() && at.Sub(same.LastObservedTime.Time) < o.HeartbeatInterval:
			at = same.LastObservedTime.Time
		case at.IsZero():
			at = now
		}
		property.LastObservedTime = metav1.NewTime(at).Rfc3339Copy()
	}
}

// conditions returns those of the source, with the result of the probe.
func (o *Options) conditions(source, current *inventory.Profile, observed *observation, now time.Time) []metav1.Condition {
	conditions := slices.Clone(source.Status.Conditions)
	if o.Probe != nil && observed != nil {
		conditions = slices.DeleteFunc(conditions, func(c metav1.Condition) bool { return c.Type == inventory.ConditionControlPlaneHealthy })
		conditions = append(conditions, metav1.Condition{
			Type: inventory.ConditionControlPlaneHealthy, Status: observed.Status, Reason: observed.Reason, Message: observed.Message,
			LastTransitionTime: metav1.NewTime(observed.time),
		})
	}
	for i := range conditions {
		condition := &conditions[i]
		condition.ObservedGeneration = 0 // of another object
		before := meta.FindStatusCondition(current.Status.Conditions, condition.Type)
		if before != nil && before.Status == condition.Status {
			condition.LastTransitionTime = before.LastTransitionTime
		} else if condition.LastTransitionTime.IsZero() {
			condition.LastTransitionTime = metav1.NewTime(now)
		}
		condition.LastTransitionTime = condition.LastTransitionTime.Rfc3339Copy()
	}
	if conditions == nil {
		conditions = []metav1.Condition{} // the API requires a list
	}
	return conditions
}

// keepMessages takes the messages of the published conditions where status and
// reason are the same. It reports whether any differs.
func keepMessages(p, current *inventory.Profile) (differs bool) {
	for i := range p.Status.Conditions {
		condition := &p.Status.Conditions[i]
		before := meta.FindStatusCondition(current.Status.Conditions, condition.Type)
		if before != nil && before.Status == condition.Status && before.Reason == condition.Reason {
			differs = differs || condition.Message != before.Message
			condition.Message = before.Message
		}
	}
	return differs
}

// coversMetadata reports whether the published profile has all of the wanted
// metadata and spec. It may have more, of other writers.
func coversMetadata(current, wanted *inventory.Profile) bool {
	return contains(current.Labels, wanted.Labels) && contains(current.Annotations, wanted.Annotations) && current.Spec == wanted.Spec
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if present, ok := all[key]; !ok || present != value {
			return false
		}
	}
	return true
}

// coversStatus is coversMetadata for the status.
func coversStatus(current, wanted *inventory.Profile) bool {
	a, b := &current.Status, &wanted.Status
	return a.Version == b.Version &&
		includes(a.Conditions, b.Conditions, func(c metav1.Condition) string { return c.Type }) &&
		includes(a.Properties, b.Properties, func(p v1alpha1.Property) string { return p.Name }) &&
		includes(a.AccessProviders, b.AccessProviders, func(p inventory.AccessProvider) string { return p.Name })
}

func includes[T any](all, some []T, key func(T) string) bool {
	byKey := make(map[string]T, len(all))
	for _, item := range all {
		byKey[key(item)] = item
	}
	for _, item := range some {
		if present, ok := byKey[key(item)]; !ok || !equality.Semantic.DeepEqual(present, item) {
			return false
		}
	}
	return true
}

// isUrgent reports whether consumers should see the change at once: the status of a
// condition, or how to reach the cluster.
func isUrgent(current, wanted *inventory.Profile) bool {
	if inventory.Fingerprint(current) != inventory.Fingerprint(wanted) {
		return true
	}
	for _, condition := range wanted.Status.Conditions {
		before := meta.FindStatusCondition(current.Status.Conditions, condition.Type)
		if before == nil || before.Status != condition.Status {
			return true
		}
	}
	return false
}
