// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity compares what users hand in by interface.
package identity

import "reflect"

// Same tells whether two values are equal, as pointers to the same thing are.
// Values of types that cannot be compared are never the same.
func Same(a, b any) bool {
	v := reflect.ValueOf(a)
	return v.IsValid() && v.Comparable() && a == b
}
