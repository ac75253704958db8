// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package lint finds what is wrong with an inventory: profiles of one cluster that
// consumers take for several, profiles without a member ID or a provider, decisions
// about profiles that do not exist, and profiles that the version v1alpha2 of the API
// (KEP-4322), which is stricter, would reject.
//
//	findings := lint.Profiles(profiles, decisions, lint.Options{Providers: []string{"token-secret"}})
//	for _, finding := range findings {
//		if finding.Severity == lint.Error {
//			fmt.Println(finding)
//		}
//	}
//
// It reads nothing but its arguments. [hub.List] reads those of a hub. A [Finding]
// names the object, what is wrong with it and what to do. It repeats no URL and no
// extension of a profile, which may contain secrets by mistake.
package lint
