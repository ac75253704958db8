// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

const (
	// maxGeneratedBase is how much of a generateName is used.
	maxGeneratedBase = 58
	generatedSuffix  = 5
	// generateAttempts is how many generated names are tried.
	generateAttempts = 8
)

// Create stores a new object. It may change the object.
func (s *Server) Create(t Target, object *unstructured.Unstructured, o WriteOptions) (*store.Record, error) {
	if err := s.accept(object, t.Resource); err != nil {
		return nil, err
	}
	object.SetManagedFields(nil)
	return s.create(t, object, o)
}

// create stores a new object that is in stored form.
func (s *Server) create(t Target, object *unstructured.Unstructured, o WriteOptions) (*store.Record, error) {
	if err := t.checkNamespace(object); err != nil {
		return nil, err
	}
	if object.GetResourceVersion() != "" {
		return nil, unexplained("resourceVersion should not be set on objects to be created")
	}
	if err := s.checkCreation(t); err != nil {
		return nil, err
	}
	generate := object.GetName() == "" && object.GetGenerateName() != ""
	for attempt := 1; ; attempt++ {
		if generate {
			base := object.GetGenerateName()
			object.SetName(base[:min(len(base), maxGeneratedBase)] + utilrand.String(generatedSuffix))
		}
		rec, err := s.createNamed(t, object, o)
		if generate && apierrors.IsAlreadyExists(err) && attempt < generateAttempts {
			continue
		}
		return rec, err
	}
}

func (s *Server) createNamed(t Target, object *unstructured.Unstructured, o WriteOptions) (*store.Record, error) {
	t.Name = object.GetName()
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(metav1.Now())
	object.SetDeletionTimestamp(nil)
	object.SetDeletionGracePeriodSeconds(nil)
	object.SetSelfLink("")
	unstructured.RemoveNestedField(object.Object, "metadata", "generation")
	if t.Resource.Generation {
		object.SetGeneration(1)
	}
	if err := initialise(t, object); err != nil {
		return nil, err
	}
	if errs := validation.ValidateObjectMetaAccessor(object, t.Resource.Namespaced, t.validName, field.NewPath("metadata")); len(errs) > 0 {
		return nil, apierrors.NewInvalid(t.groupKind(), t.Name, errs)
	}
	rec, err := s.commit(t, nil, object, false, o.DryRun)
	if errors.Is(err, store.ErrConflict) {
		return nil, apierrors.NewAlreadyExists(t.Resource.GroupResource(), t.Name)
	}
	return rec, err
}

// checkCreation fails if the namespace of a new object does not exist or is
// terminating.
func (s *Server) checkCreation(t Target) error {
	if !t.Resource.Namespaced {
		return nil
	}
	if t.Namespace == "" {
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	}
	namespace, err := s.namespace(t.Namespace)
	if err != nil {
		return err
	}
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	forbidden := apierrors.NewForbidden(t.Resource.GroupResource(), t.Name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", t.Namespace))
	forbidden.ErrStatus.Details.Causes = append(forbidden.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", t.Namespace),
		Field:   "metadata.namespace",
	})
	return forbidden
}
