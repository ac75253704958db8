// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
)

var crdStorage = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// establish completes a new CustomResourceDefinition: the default names, and a
// status that reports it as served.
func establish(object *unstructured.Unstructured) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if want := crd.Spec.Names.Plural + "." + crd.Spec.Group; crd.Name != want {
		return apierrors.NewInvalid(crdKind, crd.Name, field.ErrorList{field.Invalid(
			field.NewPath("metadata", "name"), crd.Name, fmt.Sprintf("must be spec.names.plural+\".\"+spec.group: %s", want))})
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	names := crd.Spec.Names
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: names, StoredVersions: []string{}}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
	for kind, message := range map[apiextensionsv1.CustomResourceDefinitionConditionType]string{
		apiextensionsv1.NamesAccepted: "no conflicts found",
		apiextensionsv1.Established:   "the initial names have been accepted",
	} {
		crd.Status.Conditions = append(crd.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: kind, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts", Message: message,
			LastTransitionTime: metav1.Now(),
		})
	}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	var err error
	object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	return err
}

// reloadCustomResources serves the resources of the current
// CustomResourceDefinitions, and drops the objects of deleted ones.
func (s *Server) reloadCustomResources() {
	s.catalogMu.Lock()
	defer s.catalogMu.Unlock()
	var custom []*resource.Resource
	defined := sets.New[schema.GroupResource]()
	records, _ := s.store.List(crdStorage, "")
	for _, rec := range records {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if json.Unmarshal(rec.JSON, crd) != nil {
			continue
		}
		defined.Insert(schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural})
		custom = append(custom, resource.FromCustomResourceDefinition(crd)...)
	}
	clear(s.converters)
	before := s.catalog.Load()
	s.catalog.Store(s.types.catalog.With(custom))
	for _, r := range before.All() {
		if r.Custom && !defined.Has(r.GroupResource()) {
			s.drop(r)
		}
	}
	s.changed.signal()
}

// drop removes all objects of a resource, in spite of finalizers.
func (s *Server) drop(r *resource.Resource) {
	records, _ := s.store.List(r.Storage(), "")
	for _, rec := range records {
		object, err := Decode(rec, r)
		if err != nil {
			continue
		}
		if d, err := draft(object); err == nil {
			// If it has just changed, an object stays that no client can
			// see.
			_, _ = s.store.Delete(r.Storage(), rec, d)
		}
	}
}
