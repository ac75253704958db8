// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	goyaml "sigs.k8s.io/yaml/goyaml.v2"
)

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

// checkShape finds fields that are unknown and values of a wrong type, and says
// so in words of the file, not of Go. The JSON is that of the whole file.
func checkShape(place string, data []byte) error {
	var content any
	if err := json.Unmarshal(data, &content); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	file, isMapping := content.(map[string]any)
	switch {
	case content == nil:
		return nil // like a mapping without providers
	case !isMapping:
		return fmt.Errorf("%s: must be a mapping with the key %q, not %s", place, "providers", kindOf(content))
	case !hasKey(file, "providers") && isEntry(file):
		return fmt.Errorf("%s: an entry belongs under %q", place, "providers")
	}

	var faults []error
	entries, isList := file["providers"].([]any)
	if isList {
		delete(file, "providers") // here with the names of the entries
	}
	for _, fault := range shapeFaults("", file, reflect.TypeFor[File]()) {
		faults = append(faults, fmt.Errorf("%s: %w", place, fault))
	}
	for i, entry := range entries {
		var name string
		if fields, ok := entry.(map[string]any); ok {
			name, _ = fields["name"].(string)
		}
		for _, fault := range shapeFaults("", entry, reflect.TypeFor[Provider]()) {
			faults = append(faults, fmt.Errorf("%s: providers[%d] (%q): %w", place, i, name, fault))
		}
	}
	return errors.Join(faults...)
}

func hasKey(fields map[string]any, key string) bool {
	_, found := fields[key]
	return found
}

// isEntry tells whether the fields are such as a provider has.
func isEntry(fields map[string]any) bool {
	for name := range fieldTypes(reflect.TypeFor[Provider]()) {
		if hasKey(fields, name) {
			return true
		}
	}
	return false
}

// shapeFaults compares a value with the type that it is to be decoded into. The
// path is "" for the whole.
func shapeFaults(path string, value any, t reflect.Type) []error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var faults []error
	good := value == nil
	switch v := value.(type) {
	case string:
		good = t.Kind() == reflect.String
	case bool:
		good = t.Kind() == reflect.Bool
	case []any:
		if good = t.Kind() == reflect.Slice; good {
			for i, element := range v {
				faults = append(faults, shapeFaults(fmt.Sprintf("%s[%d]", path, i), element, t.Elem())...)
			}
		}
	case map[string]any:
		if good = t.Kind() == reflect.Struct; good {
			faults = fieldFaults(path, v, fieldTypes(t))
		}
	}
	if good {
		return faults
	}
	fault := fmt.Errorf("must be %s, not %s", wanted(t), kindOf(value))
	if path != "" {
		fault = fmt.Errorf("%s: %w", path, fault)
	}
	return []error{fault}
}

func fieldFaults(path string, fields map[string]any, known map[string]reflect.Type) []error {
	if path != "" {
		path += "."
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		t, found := known[name]
		if found {
			faults = append(faults, shapeFaults(path+name, fields[name], t)...)
			continue
		}
		hint := ""
		if meant := closest(name, slices.Sorted(maps.Keys(known))); meant != "" {
			hint = fmt.Sprintf(", did you mean %q?", meant)
		}
		faults = append(faults, fmt.Errorf("unknown field %q%s", path+name, hint))
	}
	return faults
}

// fieldTypes returns the types of the struct's fields by their names in JSON.
func fieldTypes(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			known[name] = field.Type
		}
	}
	return known
}

// wanted names what a value of the type is written as.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct:
		return "a mapping"
	}
	if element := t.Elem(); element.Kind() == reflect.Struct && element != reflect.TypeFor[Provider]() {
		return "a list of {" + strings.Join(slices.Sorted(maps.Keys(fieldTypes(element))), ", ") + "}"
	} else if element.Kind() == reflect.String {
		return "a list of strings"
	}
	return "a list"
}

func kindOf(value any) string {
	switch v := value.(type) {
	case string:
		return "a string"
	case bool:
		return fmt.Sprint(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return "a number"
}

// closest returns the known name that the one given is likely a misspelling of,
// or "".
func closest(name string, known []string) string {
	meant, least := "", 0
	for _, candidate := range known {
		d := distance(strings.ToLower(name), strings.ToLower(candidate))
		if d*3 <= len(candidate) && (meant == "" || d < least) {
			meant, least = candidate, d
		}
	}
	return meant
}

// distance counts the bytes to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
