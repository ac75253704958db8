// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// identities looks for profiles of the same cluster.
func (l *linter) identities(profiles []*inventory.Profile) {
	byMember := groups(profiles, func(p *inventory.Profile) []string {
		if id := inventory.MemberID(p); id != "" {
			return []string{p.Annotations[inventory.AnnotationSource] + "\x00" + id}
		}
		return nil
	})
	for _, same := range byMember {
		ids := values(same, inventory.ClusterID)
		if len(ids) > 1 {
			l.add(Error, ConflictingIdentity, "give the profiles of each cluster a member ID of its own, or correct the property",
				same, "they have the member ID %q, and the different cluster IDs %s", inventory.MemberID(same[0]), strings.Join(ids, ", "))
		} else if len(same) > 1 {
			l.add(Info, DuplicateCluster, "", same, "%d profiles of one cluster, correlated by the member ID %q", len(same), inventory.MemberID(same[0]))
		}
	}
	// Other evidence that profiles are of one cluster. What is found once is not
	// found again by weaker evidence.
	found := map[string]bool{}
	for _, evidence := range []struct {
		of   func(*inventory.Profile) []string
		text string
	}{
		{clusterKeys, "have the same cluster ID"},
		{endpoints, "have the same server and certificate authority"},
	} {
		for _, same := range groups(profiles, evidence.of) {
			members := values(same, inventory.MemberID)
			if len(same) < 2 || len(members) == 1 && all(same, inventory.MemberID) {
				continue
			}
			keys := fmt.Sprint(keysOf(same))
			if found[keys] {
				continue
			}
			found[keys] = true
			why := "have no common member ID"
			if len(members) > 1 {
				why = "have the different member IDs " + strings.Join(members, ", ")
			}
			l.add(Warning, DuplicateCluster, "set the label "+inventory.LabelMemberID+" to the same value on all profiles of the cluster", same,
				"%d profiles %s, and %s: consumers may take them for %d clusters", len(same), evidence.text, why, len(same))
		}
	}
}

// groups returns the profiles with a common key, in the order of the keys.
func groups(profiles []*inventory.Profile, keys func(*inventory.Profile) []string) [][]*inventory.Profile {
	byKey := map[string][]*inventory.Profile{}
	for _, profile := range profiles {
		for _, key := range keys(profile) {
			if !slices.Contains(byKey[key], profile) {
				byKey[key] = append(byKey[key], profile)
			}
		}
	}
	var found [][]*inventory.Profile
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		found = append(found, byKey[key])
	}
	return found
}

// clusterKeys are the correlation keys without that of the member ID.
func clusterKeys(profile *inventory.Profile) []string {
	if inventory.MemberID(profile) == "" {
		return inventory.CorrelationKeys(profile)
	}
	copied := *profile
	copied.Labels = maps.Clone(profile.Labels)
	delete(copied.Labels, inventory.LabelMemberID)
	return inventory.CorrelationKeys(&copied)
}

// endpoints are digests of the servers with their certificate authorities. Without an
// authority of its own, a server may be a gateway of many clusters, and so may one
// with a path.
func endpoints(profile *inventory.Profile) []string {
	var found []string
	for _, provider := range inventory.AccessProviders(profile) {
		server, err := url.Parse(provider.Cluster.Server)
		if err != nil || server.Host == "" || len(provider.Cluster.CertificateAuthorityData) == 0 {
			continue
		}
		text := strings.ToLower(server.Scheme+"://"+server.Host) + strings.TrimSuffix(server.Path, "/") + "\x00" + provider.Cluster.TLSServerName
		found = append(found, fmt.Sprintf("%x", sha256.Sum256(append([]byte(text+"\x00"), provider.Cluster.CertificateAuthorityData...))))
	}
	return found
}

// values returns the different values of the profiles that are not empty, sorted.
func values(profiles []*inventory.Profile, of func(*inventory.Profile) string) []string {
	found := map[string]bool{}
	for _, profile := range profiles {
		if value := of(profile); value != "" {
			found[value] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// all reports whether the value of each profile is set.
func all(profiles []*inventory.Profile, of func(*inventory.Profile) string) bool {
	return !slices.ContainsFunc(profiles, func(p *inventory.Profile) bool { return of(p) == "" })
}

func keysOf(profiles []*inventory.Profile) []string {
	var keys []string
	for _, profile := range profiles {
		keys = append(keys, inventory.KeyOf(profile).String())
	}
	slices.Sort(keys)
	return keys
}
