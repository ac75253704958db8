// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity looks at what users hand in by interface: whether there is
// anything, and whether two are the same.
package identity

import "reflect"

// Same tells whether two values are equal, as pointers to the same thing are.
// Values of types that cannot be compared are never the same.
func Same(a, b any) bool {
	v := reflect.ValueOf(a)
	return v.IsValid() && v.Comparable() && a == b
}

// IsNil tells a nil, be it a nil pointer that has a type and so is not equal to
// nil as an interface.
func IsNil(a any) bool {
	v := reflect.ValueOf(a)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
