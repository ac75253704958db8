// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxNameLength lets a name also be the value of a label.
	maxNameLength = validation.LabelValueMaxLength

	hashLength = 16 // 80 bits
)

var (
	nameEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)

	// endsInHash recognises names that could be made by hashedName.
	endsInHash = regexp.MustCompile(`-[0-9a-v]{16}$`)

	notInNames = regexp.MustCompile(`[^a-z0-9]+`)
)

// ProfileName returns a name for the profile of the cluster of that name: a
// DNS-1123 subdomain of at most 63 characters, always the same for the same
// cluster name and different for different ones. A cluster name that is such a
// name already stays as it is; any other keeps what can be kept and ends in a
// hash.
func ProfileName(clusterName string) string {
	if len(clusterName) <= maxNameLength && !endsInHash.MatchString(clusterName) &&
		len(validation.IsDNS1123Subdomain(clusterName)) == 0 {
		return clusterName
	}
	return hashedName(clusterName, clusterName)
}

// hashedName returns a DNS-1123 label that reads like the text and is unique to
// the identity.
func hashedName(text, identity string) string {
	sum := sha256.Sum256([]byte(identity))
	hash := strings.ToLower(nameEncoding.EncodeToString(sum[:]))[:hashLength]
	readable := notInNames.ReplaceAllString(strings.ToLower(text), "-")
	readable = readable[:min(len(readable), maxNameLength-1-hashLength)]
	readable = strings.Trim(readable, "-")
	if readable == "" {
		readable = "cluster"
	}
	return readable + "-" + hash
}
