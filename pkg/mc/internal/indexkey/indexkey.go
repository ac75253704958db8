// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package indexkey identifies field indexes.
package indexkey

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key identifies an index of a cache. A cache cannot have two indexes with the same
// key.
type Key struct {
	object reflect.Type
	kind   schema.GroupVersionKind
	field  string
}

// Of returns the key of an index of the object's kind.
func Of(obj client.Object, field string) Key {
	key := Key{object: reflect.TypeOf(obj), field: field}
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata: // one type for many kinds
		key.kind = obj.GetObjectKind().GroupVersionKind()
	}
	return key
}
