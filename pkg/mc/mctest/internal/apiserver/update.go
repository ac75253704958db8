// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"maps"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// Update replaces an object, or the part of it that the target's subresource
// covers. It may change the object.
func (s *Server) Update(t Target, object *unstructured.Unstructured, o WriteOptions) (*store.Record, error) {
	if err := s.accept(object, t.Resource); err != nil {
		return nil, err
	}
	if err := t.checkNamespace(object); err != nil {
		return nil, err
	}
	switch object.GetName() {
	case t.Name:
	case "":
		object.SetName(t.Name)
	default:
		return nil, t.misnamed(object)
	}
	if object.GetResourceVersion() == "" && t.Resource.Custom {
		return nil, apierrors.NewInvalid(t.groupKind(), t.Name, field.ErrorList{field.Invalid(
			field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	}
	return s.modify(t, o, func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if uid := object.GetUID(); uid != "" && uid != current.GetUID() {
			return nil, t.preconditionFailed("UID", string(uid), string(current.GetUID()))
		}
		return object.DeepCopy(), nil
	})
}

// change computes the next state of an object from a copy of the current one.
type change func(current *unstructured.Unstructured) (*unstructured.Unstructured, error)

// modify applies a change to the latest state of an object. If another write
// comes first, the change is computed again.
func (s *Server) modify(t Target, o WriteOptions, change change) (*store.Record, error) {
	for {
		rec := s.store.Get(t.Resource.Storage(), t.Namespace, t.Name)
		if rec == nil {
			return nil, t.notFound()
		}
		live, err := Decode(rec, t.Resource)
		if err != nil {
			return nil, err
		}
		next, err := change(live.DeepCopy())
		if err != nil {
			return nil, err
		}
		if next, err = t.prepare(live, next); err != nil {
			return nil, err
		}
		if !o.applied {
			if err := s.trackUpdate(t, live, next, o.Manager); err != nil {
				return nil, err
			}
		}
		out, err := s.replace(t, rec, live, next, o)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		return out, err
	}
}

// prepare checks the next state of an object against the current one, and keeps
// what the request may not change.
func (t Target) prepare(live, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if version := next.GetResourceVersion(); version != "" && version != live.GetResourceVersion() {
		return nil, t.conflict(errModified)
	}
	next = t.merge(live, next)
	next.SetResourceVersion(live.GetResourceVersion())
	if next.GetUID() == "" {
		next.SetUID(live.GetUID())
	}
	for _, name := range []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"} {
		copyField(live, next, "metadata", name)
	}
	if t.Resource.Generation && t.body() && t.specChanged(live, next) {
		next.SetGeneration(live.GetGeneration() + 1)
	}
	metadata := field.NewPath("metadata")
	errs := validation.ValidateObjectMetaAccessor(next, t.Resource.Namespaced, t.validName, metadata)
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(next, live, metadata)...)
	if live.GetDeletionTimestamp() != nil {
		errs = append(errs, validation.ValidateNoNewFinalizers(next.GetFinalizers(), live.GetFinalizers(), metadata.Child("finalizers"))...)
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(t.groupKind(), t.Name, errs)
	}
	return next, nil
}

// merge keeps those parts of the current state that the target's subresource
// does not cover.
func (t Target) merge(live, next *unstructured.Unstructured) *unstructured.Unstructured {
	switch t.Subresource {
	case "":
		if t.Resource.Status {
			copyField(live, next, "status")
		}
		return next
	case "finalize":
		out := live.DeepCopy()
		copyField(next, out, "spec", "finalizers")
		return out
	default:
		out := live.DeepCopy()
		copyField(next, out, "status")
		out.SetManagedFields(next.GetManagedFields())
		return out
	}
}

// specChanged compares everything but metadata and, where it is a subresource,
// status.
func (t Target) specChanged(live, next *unstructured.Unstructured) bool {
	spec := func(object *unstructured.Unstructured) map[string]any {
		out := maps.Clone(object.Object)
		maps.DeleteFunc(out, func(key string, value any) bool {
			return key == "metadata" || value == nil || key == "status" && t.Resource.Status
		})
		return out
	}
	return !reflect.DeepEqual(spec(live), spec(next))
}

// replace writes the next state of an object, or removes the object if it is
// terminating and has no finalizers left.
func (s *Server) replace(t Target, rec *store.Record, live, next *unstructured.Unstructured, o WriteOptions) (*store.Record, error) {
	remove := live.GetDeletionTimestamp() != nil && t.released(next)
	if !remove && reflect.DeepEqual(live.Object, next.Object) {
		return rec, nil
	}
	if err := normalise(t, next); err != nil {
		return nil, err
	}
	return s.commit(t, rec, next, remove, o.DryRun)
}

// copyField copies a field from one object to another.
func copyField(from, to *unstructured.Unstructured, path ...string) {
	value, ok, err := unstructured.NestedFieldNoCopy(from.Object, path...)
	if !ok || err != nil {
		unstructured.RemoveNestedField(to.Object, path...)
		return
	}
	_ = unstructured.SetNestedField(to.Object, value, path...) // It fails only where a parent is no map.
}

func formatRevision(revision uint64) string { return strconv.FormatUint(revision, 10) }
