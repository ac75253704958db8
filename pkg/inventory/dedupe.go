// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
)

// AnnotationAlternates holds the keys of a profile's alternates; see Dedupe and
// Alternates.
const AnnotationAlternates = "rollcall.dev/alternates"

var isUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// Dedupe returns a source that hands out one profile for each cluster.
// Profiles, from whichever managers, are of one cluster if they have the same
// ClusterSet and the same ClusterID (KEP-2149). An ID is unique within a
// ClusterSet only; where a profile gives none, its ID counts if it is a UUID,
// as that of kube-system is. A profile without an identity is handed on as it
// is.
//
// Of the profiles of one cluster, the one that was created first is used; of
// those created in the same second, or without a time of creation, the one
// whose key is first. A profile with a time of creation comes before one
// without. So the choice is the same in each process and after each restart,
// and one that comes later takes the place of no other. The others are its
// alternates, as Alternates tells. When it goes, or is no longer of that
// cluster, the next takes over, with its own key and cluster name.
//
// While src has not synced, a profile may be used until one that precedes it
// comes in. A src that fails is run again, as with Restart.
func Dedupe(src Source) Source {
	return &decorated{
		name: "deduplicated", src: src,
		run: func(ctx context.Context, sink Sink) error {
			// What is known of duplicates outlives a failure of src.
			return Restart(src).Run(ctx, newDedupeSink(sink))
		},
	}
}

// Alternates returns the keys of the profiles of the same cluster that Dedupe
// holds back, the one that takes over next first.
func Alternates(profile *Profile) []Key {
	var keys []Key
	for text := range strings.SplitSeq(profile.Annotations[AnnotationAlternates], ",") {
		if key, ok := parseKey(text); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// identity tells clusters apart. The zero value is that of no cluster.
type identity struct {
	set, id string
}

func identityOf(profile *Profile) identity {
	i := identity{set: ClusterSet(profile), id: ClusterID(profile)}
	if i.id == "" || i.set == "" && !isUUID.MatchString(i.id) {
		return identity{}
	}
	return i
}

// precedes is the order in which the profiles of one cluster are used.
func precedes(a, b *Profile) int {
	at, bt := a.CreationTimestamp, b.CreationTimestamp
	switch {
	case at.IsZero() != bt.IsZero():
		if at.IsZero() {
			return 1
		}
		return -1
	case !at.Equal(&bt):
		return at.Compare(bt.Time)
	}
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// dedupeSink knows all profiles and what it has told of them.
type dedupeSink struct {
	sink     Sink
	profiles map[Key]dedupeEntry
	// clusters has the profiles of each cluster in the order of precedes. The
	// first is used.
	clusters map[identity][]*Profile
	// told has the alternates, as annotated, of each profile that the sink has.
	told map[Key]string
}

type dedupeEntry struct {
	profile *Profile
	cluster identity
}

func newDedupeSink(sink Sink) *dedupeSink {
	return &dedupeSink{
		sink: sink, profiles: map[Key]dedupeEntry{}, clusters: map[identity][]*Profile{}, told: map[Key]string{},
	}
}

func (s *dedupeSink) Put(profile *Profile) {
	key, cluster := KeyOf(profile), identityOf(profile)
	previous := s.profiles[key].cluster
	affected := s.used(nil, previous, cluster)
	s.take(key)
	s.profiles[key] = dedupeEntry{profile: profile, cluster: cluster}
	if cluster != (identity{}) {
		s.clusters[cluster] = append(s.clusters[cluster], profile)
		slices.SortFunc(s.clusters[cluster], precedes)
	}
	s.tell(s.used(affected, previous, cluster), key)
}

func (s *dedupeSink) Remove(key Key) {
	cluster := s.profiles[key].cluster
	affected := s.used(nil, cluster)
	s.take(key)
	s.tell(s.used(affected, cluster), key)
}

func (s *dedupeSink) Synced() {
	s.sink.Synced()
}

// take forgets the profile of the key.
func (s *dedupeSink) take(key Key) {
	cluster := s.profiles[key].cluster
	delete(s.profiles, key)
	if cluster == (identity{}) {
		return
	}
	s.clusters[cluster] = slices.DeleteFunc(s.clusters[cluster], func(p *Profile) bool { return KeyOf(p) == key })
	if len(s.clusters[cluster]) == 0 {
		delete(s.clusters, cluster)
	}
}

// used appends the keys of the profiles that are used for the clusters.
func (s *dedupeSink) used(keys []Key, clusters ...identity) []Key {
	for _, cluster := range clusters {
		if profiles := s.clusters[cluster]; len(profiles) > 0 {
			keys = append(keys, KeyOf(profiles[0]))
		}
	}
	return keys
}

// tell brings the sink up to date on what was or is used for the clusters that
// an event concerns, and on the profile of the event. What goes, goes first.
func (s *dedupeSink) tell(affected []Key, event Key) {
	affected = distinct(append(affected, event))
	for _, key := range affected {
		if _, told := s.told[key]; told && !s.handsOut(key) {
			delete(s.told, key)
			s.sink.Remove(key)
		}
	}
	for _, key := range affected {
		if !s.handsOut(key) {
			continue
		}
		alternates := s.alternates(key)
		if before, told := s.told[key]; told && before == alternates && key != event {
			continue
		}
		s.told[key] = alternates
		s.sink.Put(WithAnnotation(s.profiles[key].profile, AnnotationAlternates, alternates))
	}
}

// distinct returns the keys, which are few, without repetitions.
func distinct(keys []Key) []Key {
	var all []Key
	for _, key := range keys {
		if !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}

// handsOut says whether the profile of the key is one that the sink is to have.
func (s *dedupeSink) handsOut(key Key) bool {
	entry, ok := s.profiles[key]
	return ok && (entry.cluster == identity{} || KeyOf(s.clusters[entry.cluster][0]) == key)
}

// alternates returns the keys of those that wait for the profile of the key to
// go.
func (s *dedupeSink) alternates(key Key) string {
	profiles := s.clusters[s.profiles[key].cluster]
	if len(profiles) < 2 {
		return ""
	}
	keys := make([]string, 0, len(profiles)-1)
	for _, profile := range profiles[1:] {
		keys = append(keys, KeyOf(profile).String())
	}
	return strings.Join(keys, ",")
}
