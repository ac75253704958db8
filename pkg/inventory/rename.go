// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-dev/rollcall/pkg/inventory/internal/metadata"
)

// AnnotationRenamedFrom is the "namespace/name" of a profile before Rename.
const AnnotationRenamedFrom = "rollcall.dev/renamed-from"

// Prefix returns a function for Rename that adds the prefix to each name.
func Prefix(prefix string) func(clusterName string) string {
	return func(clusterName string) string { return prefix + clusterName }
}

// Rename returns a source of src's profiles with other cluster names, so that
// sources with the same names can be merged:
//
//	inventory.Merge(
//		inventory.Rename(hubA, inventory.Prefix("a#")),
//		inventory.Rename(hubB, inventory.Prefix("b#")),
//	)
//
// The new cluster name is in the annotation AnnotationClusterName. The profile
// also gets a unique name in its namespace, so that its key differs from those of
// other sources; OriginalKey returns the key before. If rename returns the same
// name or "", the profile is passed on unchanged. rename must return the same
// result for the same name; it may map several names to one.
func Rename(src Source, rename func(clusterName string) string) Source {
	return &decorated{
		name: "renamed", src: src,
		SourceFunc: func(ctx context.Context, sink Sink) error {
			return src.Run(ctx, &renameSink{sink: sink, rename: rename, renamed: map[Key]Key{}})
		},
	}
}

// OriginalKey returns the profile's key before the first Rename.
func OriginalKey(profile *Profile) Key {
	if key, ok := parseKey(profile.Annotations[AnnotationRenamedFrom]); ok {
		return key
	}
	return KeyOf(profile)
}

// parseKey parses the result of Key.String.
func parseKey(text string) (Key, bool) {
	namespace, name, ok := strings.Cut(text, string(types.Separator))
	return Key{Namespace: namespace, Name: name}, ok && name != ""
}

// renameSink remembers the new key of each profile of this run. It need not
// know those of earlier runs: Restart removes what the source does not send again.
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
	changed := *metadata.WithAnnotation(profile, AnnotationClusterName, renamed)
	changed.Name = hashedName(renamed, renamed+"\n"+KeyOf(profile).String())
	return metadata.WithAnnotation(&changed, AnnotationRenamedFrom, original)
}
