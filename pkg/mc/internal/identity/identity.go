// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity compares values that users pass as interfaces.
package identity

import "reflect"

// Same reports whether two values are equal, such as pointers to the same value.
// Values of types that are not comparable are never the same.
func Same(a, b any) bool {
	v := reflect.ValueOf(a)
	return v.IsValid() && v.Comparable() && a == b
}

// IsNil reports whether the value is nil, a nil pointer or a nil function.
func IsNil[T any](a T) bool {
	v := reflect.ValueOf(a)
	return !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Func) && v.IsNil()
}
