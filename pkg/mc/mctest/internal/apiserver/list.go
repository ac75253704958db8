// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// continuation is the content of a continue token: where the next page starts,
// and at which revision. Revision 0 is the latest.
type continuation struct {
	Revision uint64 `json:"rv,omitempty"`
	After    string `json:"after"`
}

func (c continuation) token() string {
	raw, _ := json.Marshal(c) // None of its types can fail.
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseContinuation(token string) (continuation, error) {
	var c continuation
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return c, apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
	}
	return c, nil
}

// Records are those of the page.
func (p *Page) Records() []*store.Record { return p.records }

// List reads the objects of the target's namespace, or of all.
func (s *Server) List(t Target, o *metainternal.ListOptions) (*Page, error) {
	if err := invalidOptions("ListOptions", internalvalidation.ValidateListOptions(o, true)); err != nil {
		return nil, err
	}
	sel, err := newSelection(t, o)
	if err != nil {
		return nil, err
	}
	wanted, err := parseRevision(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	p, after, err := s.snapshot(t, o, wanted)
	if err != nil {
		return nil, err
	}
	if after != "" {
		start := 0
		for start < len(p.records) && p.records[start].Key() <= after {
			start++
		}
		p.records = p.records[start:]
	}
	p.records = sel.filter(p.records)
	limit := int(o.Limit)
	if o.ResourceVersion == "0" {
		limit = 0 // Like a real server, which answers such a list from its cache.
	}
	if limit > 0 && len(p.records) > limit {
		if sel.everything() {
			p.remaining = ptr.To(int64(len(p.records) - limit))
		}
		p.records = p.records[:limit]
		p.next = continuation{Revision: p.revision, After: p.records[limit-1].Key()}.token()
	}
	return p, nil
}

// snapshot returns the records of a list, and the key after which its page
// starts.
func (s *Server) snapshot(t Target, o *metainternal.ListOptions, wanted uint64) (*Page, string, error) {
	var after string
	exact := uint64(0)
	switch {
	case o.Continue != "":
		c, err := parseContinuation(o.Continue)
		if err != nil {
			return nil, "", err
		}
		exact, after = c.Revision, c.After
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact,
		o.ResourceVersionMatch == "" && o.Limit > 0 && wanted > 0:
		exact = wanted
	}
	storage := t.Resource.Storage()
	if exact == 0 {
		records, revision := s.store.List(storage, t.Namespace)
		if wanted > revision {
			return nil, "", tooLarge(wanted, revision)
		}
		return &Page{records: records, revision: revision}, after, nil
	}
	records, err := s.store.ListAt(storage, t.Namespace, exact)
	switch {
	case errors.Is(err, store.ErrExpired) && o.Continue != "":
		expired := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
			"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results.")
		expired.ErrStatus.ListMeta.Continue = continuation{After: after}.token()
		return nil, "", expired
	case errors.Is(err, store.ErrExpired):
		return nil, "", apierrors.NewResourceExpired(fmt.Sprintf("The resourceVersion for the provided list is too old: %d", exact))
	case errors.Is(err, store.ErrFuture):
		return nil, "", tooLarge(exact, s.store.Revision())
	case err != nil:
		return nil, "", err
	}
	return &Page{records: records, revision: exact}, after, nil
}

func parseRevision(version string) (uint64, error) {
	if version == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q", version))
	}
	return revision, nil
}

func tooLarge(wanted, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// selection decides which objects a list or watch shows.
type selection struct {
	resource  *resource.Resource
	namespace string
	name      string // empty for all
	labels    labels.Selector
	fields    fields.Selector
}

func newSelection(t Target, o *metainternal.ListOptions) (*selection, error) {
	sel := &selection{resource: t.Resource, namespace: t.Namespace, name: t.Name, labels: labels.Everything(), fields: fields.Everything()}
	if o.LabelSelector != nil {
		sel.labels = o.LabelSelector
	}
	if o.FieldSelector != nil {
		sel.fields = o.FieldSelector
	}
	for _, requirement := range sel.fields.Requirements() {
		switch {
		case requirement.Field == "metadata.name":
		case requirement.Field == "metadata.namespace" && t.Resource.Namespaced:
		case slices.Contains(t.Resource.SelectableFields, requirement.Field):
		default:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", requirement.Field))
		}
	}
	return sel, nil
}

func (sel *selection) everything() bool {
	return sel.name == "" && sel.labels.Empty() && sel.fields.Empty()
}

// shows reports whether a record is selected.
func (sel *selection) shows(rec *store.Record) bool {
	switch {
	case sel.namespace != "" && rec.Namespace != sel.namespace:
		return false
	case sel.name != "" && rec.Name != sel.name:
		return false
	case !sel.labels.Matches(rec.Labels):
		return false
	case sel.fields.Empty():
		return true
	}
	return sel.fields.Matches(&recordFields{record: rec, resource: sel.resource})
}

func (sel *selection) filter(records []*store.Record) []*store.Record {
	if sel.everything() {
		return records
	}
	return slices.DeleteFunc(records, func(rec *store.Record) bool { return !sel.shows(rec) })
}

// recordFields reads the fields of a record that a selector asks for, and
// decodes it only for those beyond name and namespace.
type recordFields struct {
	record   *store.Record
	resource *resource.Resource
	object   *unstructured.Unstructured
}

// Has implements fields.Fields.
func (f *recordFields) Has(string) bool { return true }

// Get implements fields.Fields.
func (f *recordFields) Get(name string) string {
	switch name {
	case "metadata.name":
		return f.record.Name
	case "metadata.namespace":
		return f.record.Namespace
	}
	if f.object == nil {
		object, err := Decode(f.record, f.resource)
		if err != nil {
			return ""
		}
		f.object = object
	}
	value, ok, err := unstructured.NestedFieldNoCopy(f.object.Object, strings.Split(name, ".")...)
	if !ok || err != nil || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
