// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"fmt"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// checkBinding refuses a profile that must not use the provider.
func checkBinding(provider *providerfile.Provider, profile *inventory.Profile) error {
	for _, rule := range []struct {
		what, value, field string
		allowed            []string
	}{
		{"namespace", profile.Namespace, "allowedProfileNamespaces", provider.Rollcall.AllowedProfileNamespaces},
		{"cluster manager", profile.Spec.ClusterManager.Name, "allowedClusterManagers", provider.Rollcall.AllowedClusterManagers},
	} {
		if len(rule.allowed) > 0 && !rules.MatchesAny(rule.allowed, rule.value) {
			return fmt.Errorf("%w: the profile's %s %q is not among the provider's %s", ErrDenied, rule.what, rule.value, rule.field)
		}
	}
	return nil
}
