// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"

	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/lint"
)

func ExampleProfiles() {
	profiles := []*inventory.Profile{newProfile("fleet/c1", "member-1"), newProfile("other/c1", "member-1")}
	decisions := []*v1alpha1.PlacementDecision{decision("fleet/web", "c2")}
	for _, finding := range lint.Profiles(profiles, decisions, lint.Options{Providers: []string{"known"}}) {
		fmt.Println(finding)
	}
	// Output:
	// error: PlacementDecision fleet/web: it names the profile fleet/c2, which does not exist
	// info: ClusterProfile fleet/c1, other/c1: 2 profiles of one cluster, correlated by the member ID "member-1"
}
