// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"reflect"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/internal/identity"
)

// EqualClusters reports whether two clusters are identical or have equal
// configs. Data in configs is compared by content; transports and the like are
// equal if they are identical. Functions, such as Dial or WrapTransport, cannot
// be compared: configs that have some are unequal. Warning handlers are ignored.
// Nil is equal to nil alone.
// EqualClusters never panics.
func EqualClusters[T cluster.Cluster](a, b T) bool {
	if identity.IsNil(a) || identity.IsNil(b) {
		return identity.IsNil(a) && identity.IsNil(b)
	}
	return identical(reflect.ValueOf(a), reflect.ValueOf(b)) || equalConfigs(a.GetConfig(), b.GetConfig())
}

func equalConfigs(a, b *rest.Config) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	// Warning handlers only decide what is logged, and programs make new ones for
	// each config.
	dataA, dataB := *a, *b
	for _, config := range []*rest.Config{&dataA, &dataB} {
		config.WarningHandler, config.WarningHandlerWithContext = nil, nil
	}
	return equalFields(reflect.ValueOf(dataA), reflect.ValueOf(dataB))
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
		case reflect.Interface:
			equal = identical(fa, fb)
		default:
			equal = reflect.DeepEqual(fa.Interface(), fb.Interface())
		}
		if !equal {
			return false
		}
	}
	return true
}

// identical reports whether two values share all that they refer to. It returns
// false for values that cannot be compared.
func identical(a, b reflect.Value) bool {
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
	case reflect.Map, reflect.Slice:
		return a.UnsafePointer() == b.UnsafePointer() && a.Len() == b.Len()
	case reflect.Struct:
		for i := range a.NumField() {
			if !identical(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Comparable() && b.Comparable() && a.Equal(b)
}
