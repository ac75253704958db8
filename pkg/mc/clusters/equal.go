// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"reflect"
	"unsafe"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
)

// EqualClusters tells whether two clusters are one and the same, or have equal
// configs. Fields that are functions, transports and the like are equal if they
// are the same value: two closures are not, even of the same code, since they
// may differ in what they capture. When in doubt clusters are unequal. Nil is
// equal to nil alone. It never panics.
func EqualClusters[T cluster.Cluster](a, b T) bool {
	if identity.IsNil(a) || identity.IsNil(b) {
		return identity.IsNil(a) && identity.IsNil(b)
	}
	return same(reflect.ValueOf(a), reflect.ValueOf(b)) || equalConfigs(a.GetConfig(), b.GetConfig())
}

func equalConfigs(a, b *rest.Config) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return equalFields(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem())
}

// equalFields compares data by content and anything that may have state by
// identity.
func equalFields(a, b reflect.Value) bool {
	for i := range a.NumField() {
		fa, fb := a.Field(i), b.Field(i)
		var equal bool
		switch fa.Kind() {
		case reflect.Struct:
			equal = equalFields(fa, fb)
		case reflect.Func, reflect.Interface:
			equal = same(fa, fb)
		default:
			equal = reflect.DeepEqual(fa.Interface(), fb.Interface())
		}
		if !equal {
			return false
		}
	}
	return true
}

// same tells whether two values are identical: what they refer to, they share.
// Those that cannot be compared are not.
func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Interface {
		a, b = a.Elem(), b.Elem()
	}
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Func:
		return a.CanInterface() && closure(a) == closure(b)
	case reflect.Map, reflect.Slice:
		return a.UnsafePointer() == b.UnsafePointer() && a.Len() == b.Len()
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Comparable() && b.Comparable() && a.Equal(b)
}

// closure returns what tells a function from all others. It is not its code,
// which reflect gives: closures made from one literal share that. A function
// value is a pointer to its code and what it captures; this is that pointer.
func closure(function reflect.Value) unsafe.Pointer {
	variable := reflect.New(function.Type())
	variable.Elem().Set(function)
	return *(*unsafe.Pointer)(variable.UnsafePointer())
}
