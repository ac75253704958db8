// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/inventory/internal/metadata"
)

// AnnotationAlternates lists the keys of the other profiles of the same
// cluster. Dedupe sets it, Alternates reads it.
const AnnotationAlternates = "rollcall.dev/alternates"

// Dedupe returns a source with one profile for each cluster of src.
//
// Profiles are of the same cluster if they have the same ClusterSet and the
// same ClusterID (KEP-2149). An ID is unique only within a ClusterSet; without
// a ClusterSet it counts if it is a UUID, as that of the namespace kube-system.
// A profile without such an identity is passed on unchanged.
//
// The oldest profile of a cluster is used, by creation time (to the second),
// then by key; profiles without a creation time come last. So every process makes
// the same choice, also after a restart, and a new profile never replaces one
// in use. The other profiles are its alternates; see Alternates. When it is
// removed, or no longer has that identity, the next one replaces it, with its
// own key and cluster name.
//
// Until src has synced, a profile may be used before an older one arrives.
// Dedupe restarts src after a failure, as Restart does.
func Dedupe(src Source) Source {
	return &decorated{
		name: "deduplicated", src: src,
		SourceFunc: func(ctx context.Context, sink Sink) error {
			return Restart(src).Run(ctx, newDedupeSink(sink)) // the sink's state survives restarts
		},
	}
}

// Alternates returns the keys of the other profiles of the same cluster, which
// Dedupe withholds, in the order in which they would be used.
func Alternates(profile *Profile) []Key {
	var keys []Key
	for text := range strings.SplitSeq(profile.Annotations[AnnotationAlternates], ",") {
		if key, ok := parseKey(text); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// identity identifies a cluster: by ClusterSet and ID, or by the key of its only
// profile.
type identity struct {
	set, id string
	profile Key
}

func identityOf(profile *Profile) identity {
	set, id := ClusterSet(profile), ClusterID(profile)
	if id == "" || set == "" && !isUUID.MatchString(id) {
		return identity{profile: KeyOf(profile)}
	}
	return identity{set: set, id: id}
}

// compareAge orders profiles by creation time, then by key. Profiles without a
// creation time come last.
func compareAge(a, b *Profile) int {
	at, bt := a.CreationTimestamp, b.CreationTimestamp
	switch {
	case at.IsZero() && !bt.IsZero():
		return 1
	case bt.IsZero() && !at.IsZero():
		return -1
	}
	return cmp.Or(at.Compare(bt.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// dedupeSink passes the first profile of each cluster on to a sink.
type dedupeSink struct {
	sink     Sink
	profiles map[Key]*Profile
	clusters map[identity][]*Profile // the profiles of each cluster, in the order of compareAge
	sent     map[Key]string          // the alternates of each profile that the sink has
}

func newDedupeSink(sink Sink) *dedupeSink {
	return &dedupeSink{sink: sink, profiles: map[Key]*Profile{}, clusters: map[identity][]*Profile{}, sent: map[Key]string{}}
}

func (s *dedupeSink) Put(profile *Profile) { s.replace(KeyOf(profile), profile) }
func (s *dedupeSink) Remove(key Key)       { s.replace(key, nil) }
func (s *dedupeSink) Synced()              { s.sink.Synced() }

// replace replaces the profile of the key, or removes it if the new one is nil.
func (s *dedupeSink) replace(key Key, profile *Profile) {
	var clusters []identity
	if old := s.profiles[key]; old != nil {
		cluster := identityOf(old)
		clusters = append(clusters, cluster)
		s.clusters[cluster] = slices.DeleteFunc(s.clusters[cluster], func(p *Profile) bool { return p == old })
		if len(s.clusters[cluster]) == 0 {
			delete(s.clusters, cluster)
		}
		delete(s.profiles, key)
	}
	if profile != nil {
		cluster := identityOf(profile)
		clusters = append(clusters, cluster)
		s.clusters[cluster] = append(s.clusters[cluster], profile)
		slices.SortFunc(s.clusters[cluster], compareAge)
		s.profiles[key] = profile
	}
	s.update(key, clusters)
}

// update sends the sink the changed profile of the key, and what follows for the
// other profiles of these clusters. Removals come first.
func (s *dedupeSink) update(key Key, clusters []identity) {
	affected := []Key{key}
	for _, cluster := range clusters {
		for _, profile := range s.clusters[cluster] {
			if other := KeyOf(profile); other != key {
				affected = append(affected, other)
			}
		}
	}
	for _, k := range affected {
		if _, sent := s.sent[k]; sent && !s.isUsed(k) {
			delete(s.sent, k)
			s.sink.Remove(k)
		}
	}
	for _, k := range affected {
		if !s.isUsed(k) {
			continue
		}
		alternates := s.alternates(k)
		if before, sent := s.sent[k]; !sent || before != alternates || k == key {
			s.sent[k] = alternates
			s.sink.Put(metadata.WithAnnotation(s.profiles[k], AnnotationAlternates, alternates))
		}
	}
}

// isUsed reports whether the sink is to have the profile of the key.
func (s *dedupeSink) isUsed(key Key) bool {
	profile := s.profiles[key]
	return profile != nil && s.clusters[identityOf(profile)][0] == profile
}

// alternates returns the annotation of the profile of the key, which is used.
func (s *dedupeSink) alternates(key Key) string {
	var keys []string
	for _, profile := range s.clusters[identityOf(s.profiles[key])][1:] {
		keys = append(keys, KeyOf(profile).String())
	}
	return strings.Join(keys, ",")
}
