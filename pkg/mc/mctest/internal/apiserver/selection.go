// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

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
