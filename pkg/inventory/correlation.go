// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import "regexp"

// AnnotationSource tells profiles of several sources apart. Merge sets it. An
// annotation of this name in a hub is ignored.
const AnnotationSource = "rollcall.dev/source"

var isUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// CorrelationKeys returns what the profile says of the identity of its cluster, the
// strongest evidence first. Two profiles with a common key stand for the same cluster,
// if their authors are believed.
//
//   - The member ID (KEP-4322), together with the source of a Merge: a member ID
//     identifies a cluster within one hub.
//   - The ClusterID and the ClusterSet (KEP-2149). Without a ClusterSet, only a
//     ClusterID that is a UUID counts, as the UID of the namespace kube-system is one.
func CorrelationKeys(profile *Profile) []string {
	var keys []string
	if id := MemberID(profile); id != "" {
		keys = append(keys, "member\x00"+profile.Annotations[AnnotationSource]+"\x00"+id)
	}
	set, id := ClusterSet(profile), ClusterID(profile)
	if id != "" && (set != "" || isUUID.MatchString(id)) {
		keys = append(keys, "cluster\x00"+set+"\x00"+id)
	}
	return keys
}

// TrustDomain returns a text that is equal for profiles whose authors are the same as
// far as is known: those of one namespace of one source. A Rename is no new author.
func TrustDomain(profile *Profile) string {
	return profile.Annotations[AnnotationSource] + "\x00" + OriginalKey(profile).Namespace
}
