// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

func (s *Server) servePatch(w http.ResponseWriter, r *http.Request, t Target, enc *encoder) error {
	var options metav1.PatchOptions
	if err := parameters(r, &options); err != nil {
		return err
	}
	body, mediaType, err := readBody(r)
	if err != nil {
		return err
	}
	kind := types.PatchType(mediaType)
	if err := invalidOptions("PatchOptions", validation.ValidatePatchOptions(&options, kind)); err != nil {
		return err
	}
	o := WriteOptions{DryRun: len(options.DryRun) > 0, Manager: manager(r, options.FieldManager)}
	if kind == types.ApplyYAMLPatchType {
		rec, created, err := s.Apply(t, body, ptr.Deref(options.Force, false), o)
		code := http.StatusOK
		if created {
			code = http.StatusCreated
		}
		return enc.respond(w, code, rec, err)
	}
	rec, err := s.Patch(t, kind, body, o)
	return enc.respond(w, http.StatusOK, rec, err)
}

// Patch changes an object by a JSON, merge or strategic merge patch.
func (s *Server) Patch(t Target, kind types.PatchType, patch []byte, o WriteOptions) (*store.Record, error) {
	return s.modify(t, o, func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		before, err := json.Marshal(current.Object)
		if err != nil {
			return nil, err
		}
		after, err := s.patched(t, kind, before, patch)
		if err != nil {
			return nil, err
		}
		next := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(after, &next.Object); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if next.GetName() != t.Name {
			return nil, t.misnamed(next)
		}
		if err := s.accept(next, t.Resource); err != nil {
			return nil, err
		}
		return next, t.checkNamespace(next)
	})
}

// patched applies a patch to an object in JSON.
func (s *Server) patched(t Target, kind types.PatchType, before, patch []byte) (after []byte, err error) {
	switch {
	case kind == types.JSONPatchType:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(patch); err != nil {
			break
		}
		if after, err = operations.Apply(before); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch",
				t.Resource.GroupResource(), t.Name, err.Error(), 0, false)
		}
	case kind == types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, patch)
	case kind == types.StrategicMergePatchType && !t.Resource.Custom:
		var object runtime.Object
		if object, err = s.types.scheme.New(t.Resource.GroupVersionKind); err != nil {
			return nil, err
		}
		after, err = strategicpatch.StrategicMergePatch(before, patch, object)
	default:
		return nil, unsupportedMediaType(string(kind))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return after, nil
}

// Apply changes an object by server-side apply, or creates it. It reports
// whether it has created it.
func (s *Server) Apply(t Target, configuration []byte, force bool, o WriteOptions) (rec *store.Record, created bool, err error) {
	applied := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(configuration, &applied.Object); err != nil {
		return nil, false, apierrors.NewBadRequest(err.Error())
	}
	if applied.GetKind() != t.Resource.Kind || applied.GetAPIVersion() != t.Resource.GroupVersion().String() {
		return nil, false, apierrors.NewBadRequest("apiVersion and kind of the applied configuration must be those of the resource")
	}
	if err := t.checkNamespace(applied); err != nil {
		return nil, false, err
	}
	if applied.GetName() == "" {
		applied.SetName(t.Name)
	}
	o.applied = true
	for {
		rec, err := s.modify(t, o, func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return s.merged(t, current, applied, o.Manager, force)
		})
		if !apierrors.IsNotFound(err) || !t.body() {
			return rec, false, err
		}
		rec, err = s.createApplied(t, applied, o)
		if !errors.Is(err, errCreatedConcurrently) {
			return rec, err == nil, err
		}
	}
}

var errCreatedConcurrently = errors.New("object was created in the meantime")

func (s *Server) createApplied(t Target, applied *unstructured.Unstructured, o WriteOptions) (*store.Record, error) {
	if applied.GetUID() != "" {
		return nil, t.conflict(errors.New("uid mismatch: the provided object specified a uid, and no existing object was found"))
	}
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(t.Resource.GroupVersionKind)
	empty.SetName(t.Name)
	empty.SetNamespace(t.Namespace)
	object, err := s.merged(t, empty, applied, o.Manager, false)
	if err != nil {
		return nil, err
	}
	object.SetResourceVersion(applied.GetResourceVersion())
	rec, err := s.create(t, object, o)
	if apierrors.IsAlreadyExists(err) {
		return nil, errCreatedConcurrently
	}
	return rec, err
}
