// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// LeanCache returns a cluster option for caches that hold less: all objects
// without metadata.managedFields, and those of the given kinds without anything
// but their type and metadata. Transforms that options before it have set run
// first; those of options after it replace it.
//
// An object of such a kind must not be written back as it was read from the
// cache: that would delete what the cache left out. Patch it, or read it with
// the cluster's GetAPIReader first.
func LeanCache(metadataOnly ...client.Object) cluster.Option {
	return func(o *cluster.Options) {
		o.Cache.DefaultTransform = after(o.Cache.DefaultTransform, stripManagedFields)
		byObject := maps.Clone(o.Cache.ByObject) // which clusters may share
		if byObject == nil {
			byObject = map[client.Object]cache.ByObject{}
		}
		for object, of := range byObject {
			if of.Transform != nil {
				of.Transform = after(of.Transform, stripManagedFields)
				byObject[object] = of
			}
		}
		for _, object := range metadataOnly {
			key := sameKind(byObject, object)
			of := byObject[key]
			if of.Transform == nil {
				of.Transform = stripManagedFields
			}
			of.Transform = after(of.Transform, stripContent)
			byObject[key] = of
		}
		o.Cache.ByObject = byObject
	}
}

// sameKind returns the key that stands for the object's kind, which is the
// object itself if there is none.
func sameKind(byObject map[client.Object]cache.ByObject, object client.Object) client.Object {
	for key := range byObject {
		if reflect.TypeOf(key) == reflect.TypeOf(object) &&
			key.GetObjectKind().GroupVersionKind() == object.GetObjectKind().GroupVersionKind() {
			return key
		}
	}
	return object
}

// after returns a transform that does both.
func after(first, second toolscache.TransformFunc) toolscache.TransformFunc {
	if first == nil {
		return second
	}
	return func(object any) (any, error) {
		object, err := first(object)
		if err != nil {
			return nil, err
		}
		return second(object)
	}
}

func stripManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// stripContent leaves an object its type and metadata. What is no object, such
// as the sign of a deletion that was missed, stays as it is.
func stripContent(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		maps.DeleteFunc(u.Object, func(field string, _ any) bool {
			return field != "apiVersion" && field != "kind" && field != "metadata"
		})
		return u, nil
	}
	if _, ok := object.(client.Object); !ok {
		return object, nil
	}
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("cannot leave a %T its metadata alone: it is no pointer to a struct", object)
	}
	v = v.Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.IsExported() && field.Name != "TypeMeta" && field.Name != "ObjectMeta" {
			v.Field(i).SetZero()
		}
	}
	return object, nil
}
