// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// isHeartbeat reports whether a later version of a profile has no change that could
// matter for connecting the cluster: times, reasons and messages of conditions, and
// metadata that the API server writes, do not count.
func isHeartbeat(before, after *inventory.Profile) bool {
	return before == after ||
		before.UID == after.UID &&
			maps.Equal(before.Labels, after.Labels) &&
			maps.Equal(before.Annotations, after.Annotations) &&
			equality.Semantic.DeepEqual(before.Spec, after.Spec) &&
			before.Status.Version == after.Status.Version &&
			maps.Equal(conditions(before), conditions(after)) &&
			maps.Equal(properties(before), properties(after)) &&
			inventory.Fingerprint(before) == inventory.Fingerprint(after)
}

// conditions returns the status of each condition.
func conditions(profile *inventory.Profile) map[string]string {
	all := map[string]string{}
	for i := range profile.Status.Conditions {
		all[profile.Status.Conditions[i].Type] = string(profile.Status.Conditions[i].Status)
	}
	return all
}

// properties returns the value of each property.
func properties(profile *inventory.Profile) map[string]string {
	all := map[string]string{}
	for i := range profile.Status.Properties {
		all[profile.Status.Properties[i].Name] = profile.Status.Properties[i].Value
	}
	return all
}

// accessKey is equal for versions of a profile with the same access to the cluster.
func accessKey(profile *inventory.Profile) string {
	return string(profile.UID) + " " + inventory.Fingerprint(profile)
}
