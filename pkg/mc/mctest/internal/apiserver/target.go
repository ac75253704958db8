// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// Target is the object or collection that a request concerns.
type Target struct {
	Resource    *resource.Resource
	Namespace   string
	Name        string
	Subresource string
}

// WriteOptions are the options of a write.
type WriteOptions struct {
	// DryRun changes nothing.
	DryRun bool
	// Manager is the field manager, for objects whose fields are tracked.
	Manager string
	// applied is whether the change itself tracks fields.
	applied bool
}

// Lookup finds the resource that serves a kind, or nil.
func (s *Server) Lookup(gvk schema.GroupVersionKind) *resource.Resource {
	return s.catalog.Load().FindKind(gvk)
}

// Get reads an object.
func (s *Server) Get(t Target) (*store.Record, error) {
	rec := s.store.Get(t.Resource.Storage(), t.Namespace, t.Name)
	if rec == nil {
		return nil, t.notFound()
	}
	return rec, nil
}

func (t Target) hasSubresource() bool {
	switch t.Subresource {
	case "":
		return true
	case "status":
		return t.Resource.Status && t.Name != ""
	}
	_, ok := t.Resource.Subresources[t.Subresource]
	return ok && t.Name != ""
}

// allows reports whether the target supports a verb.
func (t Target) allows(verb string) bool {
	switch {
	case !t.body():
		return slices.Contains(resource.SubresourceVerbs(t.Subresource), verb)
	case !slices.Contains(t.Resource.Verbs(), verb):
		return false
	case verb == "create":
		return t.Name == "" && (t.Namespace != "" || !t.Resource.Namespaced)
	case verb == "update" || verb == "patch":
		return t.Name != ""
	}
	return true
}

// body reports whether the target is the object itself.
func (t Target) body() bool { return t.Subresource == "" }

func (t Target) groupKind() schema.GroupKind { return t.Resource.GroupKind() }

func (t Target) notFound() error {
	return apierrors.NewNotFound(t.Resource.GroupResource(), t.Name)
}

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

func (t Target) conflict(err error) error {
	return apierrors.NewConflict(t.Resource.GroupResource(), t.Name, err)
}

func (t Target) preconditionFailed(what, want, got string) error {
	return t.conflict(fmt.Errorf("Precondition failed: %[1]s in precondition: %[2]s, %[1]s in object meta: %[3]s", //nolint:staticcheck // As a real server writes it.
		what, want, got))
}

// checkNamespace sets the namespace of an object of a request for the target.
func (t Target) checkNamespace(object *unstructured.Unstructured) error {
	switch namespace := object.GetNamespace(); {
	case namespace == "" && t.Namespace != "":
		object.SetNamespace(t.Namespace)
	case namespace != t.Namespace && !t.Resource.Namespaced:
		object.SetNamespace("")
	case namespace != t.Namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

func (t Target) misnamed(object *unstructured.Unstructured) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)",
		object.GetName(), t.Name))
}

// validName returns the validation of names of the target's resource.
func (t Target) validName(name string, prefix bool) []string {
	switch t.groupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		return validation.ValidateNamespaceName(name, prefix)
	case schema.GroupKind{Kind: "Service"}:
		return validation.NameIsDNS1035Label(name, prefix)
	}
	if t.Resource.Group == "rbac.authorization.k8s.io" {
		if prefix {
			return content.IsPathSegmentPrefix(name)
		}
		return content.IsPathSegmentName(name)
	}
	return validation.NameIsDNSSubdomain(name, prefix)
}

// draft encodes an object for the store.
func draft(object *unstructured.Unstructured) (*store.Draft, error) {
	return store.NewDraft(object.GetNamespace(), object.GetName(), object.GetLabels(), object.Object)
}

// commit writes an object, or removes it with this last state. Base is the record
// that the caller has read, or nil; the write fails with store.ErrConflict if it is
// no longer the latest.
func (s *Server) commit(t Target, base *store.Record, object *unstructured.Unstructured, remove, dryRun bool) (*store.Record, error) {
	d, err := draft(object)
	if err != nil {
		return nil, err
	}
	if dryRun {
		if s.store.Get(t.Resource.Storage(), t.Namespace, t.Name) != base {
			return nil, store.ErrConflict
		}
		if base != nil {
			return d.Preview(base.Revision), nil
		}
		return d.Preview(s.store.Revision()), nil
	}
	write, after := s.store.Put, s.written
	if remove {
		write, after = s.store.Delete, s.removed
	}
	rec, err := write(t.Resource.Storage(), base, d)
	if err == nil {
		after(t)
	}
	return rec, err
}

// kind is the kind of the body that the target accepts.
func (t Target) kind() schema.GroupVersionKind {
	if gvk, ok := t.Resource.Subresources[t.Subresource]; ok {
		return gvk
	}
	return t.Resource.GroupVersionKind
}
