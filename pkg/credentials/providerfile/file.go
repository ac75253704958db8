// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package providerfile reads the provider file of KEP-5339, which defines how
// credentials are obtained for the access providers of ClusterProfiles.
//
//	file, err := providerfile.Load("/etc/rollcall/providers.yaml")
//
// [Parse] and [Load] are strict: a field that is unknown or has another type is
// an error, which names the file, the entry and the field. A [Watcher] follows a
// file, and keeps the previous version while the current one is invalid.
//
// The fields that KEP-5339 does not define are those of [Extensions], under the
// key "rollcall" of an entry.
package providerfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
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
//	  rollcall:
//	    allowedServers: ["*.example.com"]
//
// The order matters: of the providers that a profile lists, the first of the
// file is used.
type File struct {
	// Providers are the entries. Required, but may be empty.
	Providers []Provider `json:"providers"`
}

// Load reads a provider file; see Parse for its errors.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("provider file: %w", err)
	}
	return Parse(path, data)
}

// Parse parses and checks the content of a provider file. Errors start with the
// name of the file and name the entry and the field. Fields that are unknown,
// duplicate or in another case are errors, and so is a second YAML document.
func Parse(name string, data []byte) (*File, error) { return parse(name, data, nil) }

func parse(name string, data []byte, check func(*Provider) error) (*File, error) {
	source := "provider file " + name
	providers, err := decode(source, data)
	if err != nil {
		return nil, err
	}
	if providers, err = Complete(source, providers, check); err != nil {
		return nil, err
	}
	return &File{Providers: providers}, nil
}

// decode decodes the entries one by one, so that errors name them.
func decode(source string, data []byte) ([]Provider, error) {
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err == nil {
		err = checkDocuments(data)
	}
	var file struct {
		Providers []json.RawMessage `json:"providers"`
	}
	if err == nil {
		err = rules.Decode(asJSON, &file)
	}
	if err == nil && file.Providers == nil {
		// An editor that has not finished writing leaves an empty file.
		err = errors.New("providers: is required")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	providers := make([]Provider, len(file.Providers))
	var faults []error
	for i, entry := range file.Providers {
		if err := rules.Decode(entry, &providers[i]); err != nil {
			faults = append(faults, entryError(source, i, &providers[i], err))
		}
	}
	return providers, errors.Join(faults...)
}

// checkDocuments refuses a YAML file of which only the first document would be
// read.
func checkDocuments(data []byte) error {
	decoder := goyaml.NewDecoder(bytes.NewReader(data))
	for first := true; ; first = false {
		var document any
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case !first && (err != nil || document != nil):
			return errors.New("more than one YAML document")
		case err != nil:
			return err
		}
	}
}
