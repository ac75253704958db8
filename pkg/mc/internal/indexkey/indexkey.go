// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package indexkey tells which field indexes a cache cannot both have.
package indexkey

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key is the same for two indexes that a cache cannot both have.
type Key struct {
	object reflect.Type
	kind   schema.GroupVersionKind
	field  string
}

// Of returns the key of an index of the object's kind.
func Of(obj client.Object, field string) Key {
	key := Key{object: reflect.TypeOf(obj), field: field}
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata: // types of many kinds
		key.kind = obj.GetObjectKind().GroupVersionKind()
	}
	return key
}
