// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// statusJSON is a ClusterStatus whose keys of profiles are written as everybody
// writes them: "namespace/name".
type statusJSON struct {
	*statusFields
	Profile    string   `json:"profile"`
	Alternates []string `json:"alternates,omitempty"`
}

// statusFields has the fields of a ClusterStatus, and not its methods.
type statusFields ClusterStatus

// MarshalJSON implements json.Marshaler.
func (s ClusterStatus) MarshalJSON() ([]byte, error) {
	text := statusJSON{statusFields: (*statusFields)(&s), Profile: s.Profile.String()}
	for _, key := range s.Alternates {
		text.Alternates = append(text.Alternates, key.String())
	}
	return json.Marshal(text)
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *ClusterStatus) UnmarshalJSON(data []byte) error {
	text := statusJSON{statusFields: (*statusFields)(s)}
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	var err error
	if s.Profile, err = parseKey(text.Profile); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	s.Alternates = nil
	for i, one := range text.Alternates {
		key, err := parseKey(one)
		if err != nil {
			return fmt.Errorf("alternates[%d]: %w", i, err)
		}
		s.Alternates = append(s.Alternates, key)
	}
	return nil
}

func parseKey(text string) (inventory.Key, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || name == "" {
		return inventory.Key{}, fmt.Errorf("%q is not of the form namespace/name", text)
	}
	return inventory.Key{Namespace: namespace, Name: name}, nil
}
