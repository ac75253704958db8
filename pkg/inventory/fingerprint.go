// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Fingerprint returns a digest of what a connection to the profile's cluster
// depends on: its access providers, in any order. Changes of conditions,
// properties and labels leave it unchanged.
func Fingerprint(profile *Profile) string {
	providers := AccessProviders(profile)
	slices.SortFunc(providers, func(a, b AccessProvider) int { return cmp.Compare(a.Name, b.Name) })

	digest := sha256.New()
	for i := range providers {
		if err := json.NewEncoder(digest).Encode(&providers[i]); err != nil {
			// Only an extension that is not JSON, which no API server accepts. The
			// text still differs when the extension does.
			fmt.Fprintf(digest, "%+v\n", providers[i])
		}
	}
	return hex.EncodeToString(digest.Sum(nil))
}
