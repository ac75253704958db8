// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// Delete removes an object, or marks it as terminating if it has finalizers. It
// returns the object's last state and whether it has been removed.
func (s *Server) Delete(t Target, o *metav1.DeleteOptions) (rec *store.Record, gone bool, err error) {
	for {
		rec := s.store.Get(t.Resource.Storage(), t.Namespace, t.Name)
		if rec == nil {
			return nil, false, t.notFound()
		}
		out, gone, err := s.deleteRecord(t, rec, o)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		return out, gone, err
	}
}

func (s *Server) deleteRecord(t Target, rec *store.Record, o *metav1.DeleteOptions) (*store.Record, bool, error) {
	object, err := Decode(rec, t.Resource)
	if err != nil {
		return nil, false, err
	}
	if err := t.checkPreconditions(object, o.Preconditions); err != nil {
		return nil, false, err
	}
	released := t.released(object)
	if !released {
		if object.GetDeletionTimestamp() != nil {
			return rec, false, nil
		}
		object.SetDeletionTimestamp(ptr.To(metav1.Now()))
		object.SetDeletionGracePeriodSeconds(ptr.To[int64](0))
		if object.GetGeneration() > 0 {
			object.SetGeneration(object.GetGeneration() + 1)
		}
		terminating(t, object)
	}
	out, err := s.commit(t, rec, object, released, len(o.DryRun) > 0)
	return out, released, err
}

// released reports whether an object that is to be deleted has no finalizers.
func (t Target) released(object *unstructured.Unstructured) bool {
	return len(object.GetFinalizers()) == 0 && !holdsNamespace(t, object)
}

func (t Target) checkPreconditions(object *unstructured.Unstructured, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != object.GetUID() {
		return t.preconditionFailed("UID", string(*p.UID), string(object.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != object.GetResourceVersion() {
		return t.preconditionFailed("ResourceVersion", *p.ResourceVersion, object.GetResourceVersion())
	}
	return nil
}

// DeleteCollection deletes the objects of a list, and returns that list.
func (s *Server) DeleteCollection(t Target, o *metav1.DeleteOptions, list *metainternal.ListOptions) ([]*store.Record, error) {
	p, err := s.List(t, list)
	if err != nil {
		return nil, err
	}
	for _, rec := range p.records {
		item := Target{Resource: t.Resource, Namespace: rec.Namespace, Name: rec.Name}
		if _, _, err := s.Delete(item, o); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return p.records, nil
}
