// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// AnnotationRenamedFrom holds the namespace and name that a profile had before
// Rename, as "namespace/name".
const AnnotationRenamedFrom = "rollcall.dev/renamed-from"

// Prefix returns a function for Rename that puts the prefix before each name.
func Prefix(prefix string) func(clusterName string) string {
	return func(clusterName string) string { return prefix + clusterName }
}

// Rename returns a source of src's profiles with other cluster names, so that
// sources in which the same names occur can be merged:
//
//	inventory.Merge(
//		inventory.Rename(hubA, inventory.Prefix("a#")),
//		inventory.Rename(hubB, inventory.Prefix("b#")),
//	)
//
// The new name is in the annotation AnnotationClusterName. The profile also
// gets a name of its own in its namespace, so that its key is not that of a
// profile of another source; OriginalKey gives the key before. A profile whose
// name rename leaves as it is, or returns as "", is handed on unchanged. Rename
// must return the same for the same name; it may map several names to one.
func Rename(src Source, rename func(clusterName string) string) Source {
	return &decorated{
		name: "renamed", src: src,
		run: func(ctx context.Context, sink Sink) error {
			return src.Run(ctx, &renameSink{sink: sink, rename: rename, renamed: map[Key]Key{}})
		},
	}
}

// OriginalKey returns the key that the profile had before Rename, the first
// one if it was renamed more than once, else its key.
func OriginalKey(profile *Profile) Key {
	if key, ok := parseKey(profile.Annotations[AnnotationRenamedFrom]); ok {
		return key
	}
	return KeyOf(profile)
}

// parseKey reads what Key.String has written.
func parseKey(text string) (Key, bool) {
	namespace, name, ok := strings.Cut(text, string(types.Separator))
	return Key{Namespace: namespace, Name: name}, ok && name != ""
}

// renameSink knows under which key each profile of this run was handed on.
// Those of an earlier run need not be known: what the source does not tell
// again is removed by Restart.
type renameSink struct {
	sink    Sink
	rename  func(string) string
	renamed map[Key]Key
}

func (s *renameSink) Put(profile *Profile) {
	key := KeyOf(profile)
	changed := s.change(profile)
	newKey := KeyOf(changed)
	if old, ok := s.renamed[key]; ok && old != newKey {
		s.sink.Remove(old)
	}
	s.renamed[key] = newKey
	s.sink.Put(changed)
}

func (s *renameSink) Remove(key Key) {
	if renamed, ok := s.renamed[key]; ok {
		delete(s.renamed, key)
		s.sink.Remove(renamed)
	}
}

func (s *renameSink) Synced() {
	s.sink.Synced()
}

func (s *renameSink) change(profile *Profile) *Profile {
	name := ClusterName(profile)
	renamed := s.rename(name)
	if renamed == "" || renamed == name {
		return profile
	}
	original := OriginalKey(profile).String()
	changed := *WithAnnotation(profile, AnnotationClusterName, renamed)
	// Unique by itself, whatever rename maps to the same name.
	changed.Name = hashedName(renamed, renamed+"\n"+KeyOf(profile).String())
	return WithAnnotation(&changed, AnnotationRenamedFrom, original)
}
