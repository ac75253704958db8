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
	maxNameLength = validation.LabelValueMaxLength // so that a name can be a label's value
	hashLength    = 16                             // 80 bits
)

var (
	nameEncoding = base32.HexEncoding.WithPadding(base32.NoPadding)
	endsInHash   = regexp.MustCompile(`-[0-9a-v]{16}$`) // as names of hashedName do
	notInNames   = regexp.MustCompile(`[^a-z0-9]+`)
)

// ProfileName returns a name for the profile of a cluster: a DNS-1123 subdomain
// of at most 63 characters, always the same for the same cluster name and
// different for different ones. A cluster name that is valid as it is is
// returned unchanged; any other becomes a readable part and a hash.
func ProfileName(clusterName string) string {
	if len(clusterName) <= maxNameLength && !endsInHash.MatchString(clusterName) &&
		len(validation.IsDNS1123Subdomain(clusterName)) == 0 {
		return clusterName
	}
	return hashedName(clusterName, clusterName)
}

// hashedName returns a DNS-1123 label of a readable part of the text and a hash
// of the identity.
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
