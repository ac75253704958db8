// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// checkNames returns an error for the first field whose name is not exactly one
// of the type's. The json package does not tell "secretref" from "secretRef".
func checkNames(data json.RawMessage, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if decodesItself(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		known := fieldTypes(t)
		return checkEach(data, func(name string) (reflect.Type, error) {
			if field, found := known[name]; found {
				return field, nil
			}
			return nil, fmt.Errorf("unknown field %q", name)
		})
	case reflect.Map:
		return checkEach(data, func(string) (reflect.Type, error) { return t.Elem(), nil })
	case reflect.Slice, reflect.Array:
		var values []json.RawMessage
		_ = json.Unmarshal(data, &values) // null and base64 have no fields
		for _, value := range values {
			if err := checkNames(value, t.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEach checks the values of an object, each against the type for its name.
func checkEach(data json.RawMessage, typeOf func(name string) (reflect.Type, error)) error {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(data, &values) // null has no fields
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t, err := typeOf(name)
		if err != nil {
			return err
		}
		if err := checkNames(values[name], t); err != nil {
			return err
		}
	}
	return nil
}

func decodesItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// fieldTypes returns the types of the struct's fields by their names in JSON,
// those of embedded structs included.
func fieldTypes(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for field := range t.Fields() {
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case tag == "-":
		case field.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			maps.Copy(known, fieldTypes(embedded))
		case field.IsExported():
			known[cmp.Or(name, field.Name)] = field.Type
		}
	}
	return known
}
