// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/rollcall-dev/rollcall/pkg/inventory"

// Recheck has the profile resolved again at once, as a change of it would. It is
// for those who know that its credentials have changed. Without such a profile
// it does nothing.
func (f *Fleet) Recheck(profile inventory.Key) {
	f.keepers.Range(func(_, k any) bool {
		if k := k.(*keeper); inventory.KeyOf(k.latest.Load()) == profile {
			k.credentialsChanged()
		}
		return true
	})
}
