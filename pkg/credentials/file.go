// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"os"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// File is the content of a provider file (KEP-5339), in JSON or YAML:
//
//	providers:
//	- name: secretreader
//	  execConfig:
//	    apiVersion: client.authentication.k8s.io/v1
//	    command: mc-credential-token-secret
//	    args: ["--namespace=clusters"]
//	    provideClusterInfo: true
//
// The order matters: of the providers that a profile lists, the first of the
// file is used.
type File struct {
	// Providers are the entries. Required, but may be empty.
	Providers []Provider `json:"providers"`
}

// LoadFile reads a provider file; see ParseFile for its errors.
func LoadFile(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("provider file: %w", err)
	}
	return ParseFile(path, data)
}

// ParseFile parses and checks the content of a provider file. The name is used
// in errors alone, which say in which entry and field each fault is. Fields
// that are unknown, given twice or in another case are faults, and so is a
// second YAML document.
func ParseFile(name string, data []byte) (*File, error) {
	place := "provider file " + name
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err == nil {
		err = checkDocuments(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	if err := checkShape(place, asJSON); err != nil {
		return nil, err
	}
	var file File
	strict, err := kjson.UnmarshalStrict(asJSON, &file)
	if err == nil {
		err = errors.Join(strict...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	if file.Providers == nil {
		// An editor that has not finished writing leaves an empty file.
		return nil, fmt.Errorf("%s: providers: must be given", place)
	}
	if err := validateProviders(place, file.Providers); err != nil {
		return nil, err
	}
	return &file, nil
}
