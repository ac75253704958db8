// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds that the server treats specially.
var (
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	nodeKind      = schema.GroupKind{Kind: "Node"}
	secretKind    = schema.GroupKind{Kind: "Secret"}
	crdKind       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// phases are the initial phases of kinds that have one.
var phases = map[schema.GroupKind]string{
	namespaceKind:                   string(corev1.NamespaceActive),
	{Kind: "Pod"}:                   string(corev1.PodPending),
	{Kind: "PersistentVolume"}:      string(corev1.VolumePending),
	{Kind: "PersistentVolumeClaim"}: string(corev1.ClaimPending),
}

// initialise completes a new object as its kind requires.
func initialise(t Target, object *unstructured.Unstructured) error {
	if t.Resource.Status && t.groupKind() != nodeKind {
		if t.Resource.Custom {
			delete(object.Object, "status")
		} else {
			object.Object["status"] = map[string]any{}
		}
	}
	if phase, ok := phases[t.groupKind()]; ok {
		object.Object["status"] = map[string]any{"phase": phase}
	}
	switch t.groupKind() {
	case namespaceKind:
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[corev1.LabelMetadataName] = object.GetName()
		object.SetLabels(labels)
		if err := unstructured.SetNestedStringSlice(object.Object, []string{string(corev1.FinalizerKubernetes)}, "spec", "finalizers"); err != nil {
			return err
		}
	case crdKind:
		if err := establish(object); err != nil {
			return err
		}
	}
	return normalise(t, object)
}

// normalise brings an object into its stored form, as its kind requires.
func normalise(t Target, object *unstructured.Unstructured) error {
	if t.groupKind() != secretKind {
		return nil
	}
	if object.Object["type"] == nil {
		object.Object["type"] = string(corev1.SecretTypeOpaque)
	}
	plain, ok, err := unstructured.NestedStringMap(object.Object, "stringData")
	if !ok || err != nil {
		return err
	}
	delete(object.Object, "stringData")
	data, _, err := unstructured.NestedMap(object.Object, "data")
	if err != nil {
		return err
	}
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range plain {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	object.Object["data"] = data
	return nil
}

// terminating marks an object that waits for its deletion, as its kind requires.
func terminating(t Target, object *unstructured.Unstructured) {
	if t.groupKind() == namespaceKind {
		object.Object["status"] = map[string]any{"phase": string(corev1.NamespaceTerminating)}
	}
}

// holdsNamespace reports whether a namespace still waits for the deletion of its
// content.
func holdsNamespace(t Target, object *unstructured.Unstructured) bool {
	if t.groupKind() != namespaceKind {
		return false
	}
	finalizers, _, _ := unstructured.NestedSlice(object.Object, "spec", "finalizers")
	return len(finalizers) > 0
}

// written follows up on a write.
func (s *Server) written(t Target) {
	switch t.groupKind() {
	case crdKind:
		s.reloadCustomResources()
	case namespaceKind:
		s.emptyNamespace(t.Name)
	}
}

// removed follows up on a removal.
func (s *Server) removed(t Target) {
	if t.groupKind() == crdKind {
		s.reloadCustomResources()
	}
	if t.Namespace != "" {
		s.finishNamespace(t.Namespace)
	}
}

func (s *Server) namespaceTarget(name string) Target {
	return Target{Resource: s.Lookup(corev1.SchemeGroupVersion.WithKind("Namespace")), Name: name}
}

// namespace reads a namespace.
func (s *Server) namespace(name string) (*unstructured.Unstructured, error) {
	t := s.namespaceTarget(name)
	rec, err := s.Get(t)
	if err != nil {
		return nil, err
	}
	return Decode(rec, t.Resource)
}

// createNamespaces creates the namespaces that each cluster has.
func (s *Server) createNamespaces() error {
	for _, name := range []string{
		metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
	} {
		object := &unstructured.Unstructured{}
		object.SetName(name)
		if _, err := s.Create(s.namespaceTarget(name), object, WriteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// emptyNamespace deletes the content of a terminating namespace, as the
// namespace controller of a real cluster does.
func (s *Server) emptyNamespace(name string) {
	namespace, err := s.namespace(name)
	if err != nil || namespace.GetDeletionTimestamp() == nil {
		return
	}
	for _, storage := range s.store.Resources() {
		res := s.catalog.Load().Serving(storage)
		if res == nil || !res.Namespaced {
			continue
		}
		records, _ := s.store.List(storage, name)
		for _, rec := range records {
			// Another request may have deleted it.
			_, _, _ = s.Delete(Target{Resource: res, Namespace: rec.Namespace, Name: rec.Name}, &metav1.DeleteOptions{})
		}
	}
	s.finishNamespace(name)
}

// finishNamespace removes a terminating namespace that is empty.
func (s *Server) finishNamespace(name string) {
	namespace, err := s.namespace(name)
	if err != nil || namespace.GetDeletionTimestamp() == nil || !s.store.Empty(name) {
		return
	}
	t := s.namespaceTarget(name)
	t.Subresource = "finalize"
	_, _ = s.modify(t, WriteOptions{}, func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if !s.store.Empty(name) {
			return nil, apierrors.NewConflict(t.Resource.GroupResource(), name, fmt.Errorf("namespace is not empty"))
		}
		finalizers, _, err := unstructured.NestedStringSlice(current.Object, "spec", "finalizers")
		if err != nil {
			return nil, err
		}
		kept := make([]string, 0, len(finalizers))
		for _, f := range finalizers {
			if f != string(corev1.FinalizerKubernetes) {
				kept = append(kept, f)
			}
		}
		return current, unstructured.SetNestedStringSlice(current.Object, kept, "spec", "finalizers")
	})
}
