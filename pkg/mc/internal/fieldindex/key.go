// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fieldindex

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

// KeyOf returns the key of an index of the kind of an object.
func KeyOf(obj runtime.Object, field string) Key {
	k := Key{object: reflect.TypeOf(obj), field: field}
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata: // one type for many kinds
		k.kind = obj.GetObjectKind().GroupVersionKind()
	}
	return k
}

// kindOf is a key without a field.
func (k Key) kindOf() Key {
	k.field = ""
	return k
}

// Index is a field index of the kind of an object.
type Index struct {
	Object  client.Object
	Field   string
	Extract client.IndexerFunc
}

// Key returns the key of the index.
func (i Index) Key() Key { return KeyOf(i.Object, i.Field) }

// SameCode reports whether two functions have the same code. Functions that differ
// only in variables that they capture have.
func SameCode(a, b client.IndexerFunc) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}
