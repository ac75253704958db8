// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// handoverRounds is how often the hub can be compared with an informer before the
// informer must have caught up: 5 minutes, while client-go retries at least each minute.
const handoverRounds = 20

// beginHandover is called before profiles are read from the cache's informer of
// another version. That informer may be behind: while its version was not served, it
// got no events, and it may take a minute to list again. So nothing is removed, and
// nothing returns to an older state, because of what it has. Profiles that it does not
// have, or has in an older state, are compared with the hub; see settle.
func (v *view) beginHandover() {
	v.handover = make(map[inventory.Key]*inventory.Profile, len(v.profiles))
	v.handoverRound = map[string]int{}
	for key := range v.profiles {
		v.handover[key] = nil
	}
}

// putListed is putProfile for a profile of the first list of an informer.
func (v *view) putListed(profile *inventory.Profile) {
	key := inventory.KeyOf(profile)
	if _, ok := v.handover[key]; ok {
		order, err := resourceversion.CompareResourceVersion(profile.ResourceVersion, v.profiles[key].ResourceVersion)
		if err == nil && order < 0 {
			v.handover[key] = profile
			return
		}
	}
	v.putProfile(profile)
}

// unsettled returns the namespaces whose profiles in the hub settle needs.
func (v *view) unsettled() map[string]bool {
	namespaces := map[string]bool{}
	for key := range v.handover {
		namespaces[key.Namespace] = true
	}
	return namespaces
}

// settle takes the resource versions of a namespace's profiles in the hub, by name.
// What the informer and the hub agree on is done; for the rest, the informer sends an
// event when it has caught up. A profile that it then still does not have is outside of
// the scope of the cache.
func (v *view) settle(namespace string, versions map[string]string) {
	v.handoverRound[namespace]++
	for key, older := range v.handover {
		version, exists := versions[key.Name]
		switch {
		case key.Namespace != namespace:
		case older == nil && (!exists || v.handoverRound[namespace] >= handoverRounds):
			v.removeProfile(key)
		case older != nil && version == older.ResourceVersion: // the hub was restored
			v.putProfile(older)
		}
	}
}
