// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The two forms of apply configurations: generated ones, and those of
// client.ApplyConfigurationFromUnstructured.
type (
	generatedConfiguration interface {
		GetName() *string
		GetNamespace() *string
		GetKind() *string
		GetAPIVersion() *string
	}
	unstructuredConfiguration interface {
		GetName() string
		GetNamespace() string
		SetNamespace(namespace string)
		GroupVersionKind() schema.GroupVersionKind
	}
)

// ownApply is own for an apply configuration.
func (s *scope) ownApply(obj runtime.ApplyConfiguration) error {
	gvk, name, namespace, err := describeApply(obj)
	if err != nil {
		return err
	}
	namespaced, err := s.isNamespaced(gvk)
	switch {
	case err != nil:
		return err
	case !namespaced:
		return s.clusterScoped(gvk.Kind, name)
	case namespace == s.namespace:
		return nil
	}
	if err := s.check(gvk.Kind, name, namespace); err != nil {
		return err
	}
	if config, ok := obj.(unstructuredConfiguration); ok {
		config.SetNamespace(s.namespace)
		return nil
	}
	// Each generated type has its own method with its own result.
	set := reflect.ValueOf(obj).MethodByName("WithNamespace")
	if !set.IsValid() || set.Type().NumIn() != 1 || set.Type().In(0).Kind() != reflect.String {
		return fmt.Errorf("cannot set the namespace of apply configuration %T: it has no WithNamespace", obj)
	}
	set.Call([]reflect.Value{reflect.ValueOf(s.namespace)})
	return nil
}

// bodyApply is body for an apply configuration.
func (s *scope) bodyApply(obj runtime.ApplyConfiguration) error {
	if obj == nil {
		return nil
	}
	gvk, name, namespace, err := describeApply(obj)
	if err != nil {
		return err
	}
	return s.check(gvk.Kind, name, namespace)
}

func describeApply(obj runtime.ApplyConfiguration) (gvk schema.GroupVersionKind, name, namespace string, err error) {
	switch config := obj.(type) {
	case unstructuredConfiguration:
		return config.GroupVersionKind(), config.GetName(), config.GetNamespace(), nil
	case generatedConfiguration:
		version, err := schema.ParseGroupVersion(valueOf(config.GetAPIVersion()))
		if err != nil {
			return gvk, "", "", fmt.Errorf("apply configuration %T: %w", obj, err)
		}
		return version.WithKind(valueOf(config.GetKind())), valueOf(config.GetName()), valueOf(config.GetNamespace()), nil
	}
	return gvk, "", "", fmt.Errorf("cannot find the namespace of apply configuration %T", obj)
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
