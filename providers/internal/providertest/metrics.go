// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// AwaitBroken waits until the metrics of all fleets show so many clusters that work with
// their current connection, as their new access cannot be used, and so many in Backoff.
func AwaitBroken(t testing.TB, kept, backoff float64) {
	t.Helper()
	Await(t, "the metrics show the broken clusters", func() bool {
		return gauge(t, "rollcall_fleet_access_update_failed", "") == kept && gauge(t, "rollcall_fleet_clusters", "Backoff") == backoff
	})
}

// gauge returns the sum of a metric for a state, or for all if it is "".
func gauge(t testing.TB, name, state string) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			matches := state == ""
			for _, label := range metric.GetLabel() {
				matches = matches || label.GetName() == "state" && label.GetValue() == state
			}
			if matches {
				sum += metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}
