// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package check finds out why a controller cannot reach a cluster.
//
//	rules, err := check.ParseRules("rules.yaml", data)
//	…
//	reports := check.All(ctx, profiles, check.Options{Method: resolver, Rules: rules}, nil)
//	for _, report := range reports {
//		if step := report.Failure(); step != nil {
//			fmt.Printf("%s: %s: %s: %s\n", report.Profile, step.Name, step.Message, step.Remedy)
//		}
//	}
//
// A [Report] has the steps of one profile, from the provider to the permissions. Each
// is ok, failed or skipped. A failed one has a [Cause], which programs can compare, a
// message and a remedy. [All] checks many profiles at once.
//
// # What it promises
//
//   - Each profile has a time limit of its own. A plugin or a server that hangs
//     delays no other profile, so that All takes as long as one profile may take. The
//     Method must not limit plugin runs more than that: see [ConcurrentRuns].
//   - The credential is obtained and used as a controller does. It is sent only to the
//     server of the profile.
//   - No report contains a secret.
//
// # What it sends
//
// One request without a credential, GET /version, tests the server and its
// certificate. A SelfSubjectReview, and reviews of access if there are rules, have the
// credential. They change nothing in the cluster.
//
// # Versions of plugins
//
// No plugin is run to find out its version: what one does with a flag that it does not
// know cannot be foreseen. A Go executable contains its version; of any other, the
// report has the SHA-256 digest.
package check
