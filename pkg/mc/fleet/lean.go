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
// but their type and metadata. Transforms that options before it have set, for
// all objects, a kind or a namespace, run first; those of options after it
// replace it.
//
// An object of such a kind must not be written back as it was read from the
// cache: that would delete what the cache left out. Patch it, or read it with
// the cluster's GetAPIReader first.
func LeanCache(metadataOnly ...client.Object) cluster.Option {
	return func(o *cluster.Options) {
		earlier := o.Cache
		byObject := maps.Clone(earlier.ByObject) // which clusters may share
		if byObject == nil {
			byObject = map[client.Object]cache.ByObject{}
		}
		only := map[client.Object]bool{}
		for _, object := range metadataOnly {
			key := sameKind(byObject, object)
			only[key] = true
			if _, ok := byObject[key]; !ok {
				byObject[key] = cache.ByObject{}
			}
		}
		for object, of := range byObject {
			if only[object] {
				byObject[object] = ofMetadata(of, earlier)
			} else {
				byObject[object] = ofLessMetadata(of, earlier)
			}
		}
		o.Cache.ByObject = byObject
		o.Cache.DefaultTransform = after(byNamespace(earlier.DefaultNamespaces, earlier.DefaultTransform), stripManagedFields)
		// They have become part of the others: they would come before those of kinds.
		o.Cache.DefaultNamespaces = change(earlier.DefaultNamespaces, func(_ string, config *cache.Config) { config.Transform = nil })
	}
}

// ofMetadata has objects of a kind stripped of all but their metadata, after
// the transform that controller-runtime would choose for them.
func ofMetadata(of cache.ByObject, earlier cache.Options) cache.ByObject {
	strip := after(stripManagedFields, stripContent)
	ofKind := of.Transform
	of.Namespaces = change(of.Namespaces, func(namespace string, config *cache.Config) {
		config.Transform = after(first(config.Transform, ofKind, earlier.DefaultNamespaces[namespace].Transform, earlier.DefaultTransform), strip)
	})
	if of.Transform = first(ofKind, earlier.DefaultTransform); of.Namespaces == nil {
		of.Transform = byNamespace(earlier.DefaultNamespaces, of.Transform)
	}
	of.Transform = after(of.Transform, strip)
	return of
}

// ofLessMetadata adds to the transforms that a kind has of its own.
func ofLessMetadata(of cache.ByObject, earlier cache.Options) cache.ByObject {
	if of.Transform != nil {
		if of.Namespaces == nil {
			of.Transform = byNamespace(earlier.DefaultNamespaces, of.Transform)
		}
		of.Transform = after(of.Transform, stripManagedFields)
	}
	of.Namespaces = change(of.Namespaces, func(_ string, config *cache.Config) {
		if config.Transform != nil {
			config.Transform = after(config.Transform, stripManagedFields)
		}
	})
	return of
}

// change returns changed copies of the configs, or nil for nil.
func change(configs map[string]cache.Config, f func(namespace string, config *cache.Config)) map[string]cache.Config {
	configs = maps.Clone(configs)
	for namespace, config := range configs {
		f(namespace, &config)
		configs[namespace] = config
	}
	return configs
}

// first returns the first transform that there is, or nil.
func first(transforms ...toolscache.TransformFunc) toolscache.TransformFunc {
	for _, transform := range transforms {
		if transform != nil {
			return transform
		}
	}
	return nil
}

// byNamespace returns the transform that does what that of an object's namespace
// does, where it has one, and otherwise the other, which may be nil.
func byNamespace(configs map[string]cache.Config, otherwise toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		transform := otherwise
		if accessor, err := meta.Accessor(object); err == nil && accessor.GetNamespace() != "" {
			config, ok := configs[accessor.GetNamespace()]
			if !ok {
				config = configs[cache.AllNamespaces]
			}
			transform = first(config.Transform, otherwise)
		}
		if transform == nil {
			return object, nil
		}
		return transform(object)
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
