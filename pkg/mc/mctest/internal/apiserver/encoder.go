// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// encoder writes objects of a resource in the form that a client asked for.
type encoder struct {
	types    *Types
	resource *resource.Resource
	partial  bool // only metadata
	protobuf bool
}

func (e *encoder) contentType() string {
	if e.protobuf {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// object encodes a record.
func (e *encoder) object(rec *store.Record) ([]byte, error) {
	raw, err := e.json(rec)
	if err != nil || !e.protobuf {
		return raw, err
	}
	gvk := e.resource.GroupVersionKind
	if e.partial {
		gvk = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	return e.toProtobuf(raw, gvk)
}

// toProtobuf converts an object or list from JSON by way of its Go type.
func (e *encoder) toProtobuf(raw []byte, gvk schema.GroupVersionKind) ([]byte, error) {
	scheme := e.types.scheme
	if e.partial {
		scheme = metainternalscheme.Scheme
	}
	object, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = e.types.protobuf.Encode(object, &b)
	return b.Bytes(), err
}

// json encodes a record in JSON: as it is stored, if the client asks for that.
func (e *encoder) json(rec *store.Record) ([]byte, error) {
	raw := rec.JSON
	if rec.APIVersion != e.resource.GroupVersion().String() {
		object, err := Decode(rec, e.resource)
		if err != nil {
			return nil, err
		}
		if raw, err = json.Marshal(object.Object); err != nil {
			return nil, err
		}
	}
	if !e.partial {
		return raw, nil
	}
	var parts struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, err
	}
	return slices.Concat([]byte(`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":`), parts.Metadata, []byte("}")), nil
}

// Page is a part of a list.
type Page struct {
	records   []*store.Record
	revision  uint64
	next      string // continue token
	remaining *int64
}

// list writes a page.
func (e *encoder) list(w http.ResponseWriter, p *Page) error {
	var b bytes.Buffer
	gvk := e.resource.GroupVersion().WithKind(e.resource.ListKind)
	if e.partial {
		gvk = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
	}
	listMeta, err := json.Marshal(metav1.ListMeta{
		ResourceVersion: formatRevision(p.revision), Continue: p.next, RemainingItemCount: p.remaining,
	})
	if err != nil {
		return err
	}
	b.WriteString(`{"kind":"` + gvk.Kind + `","apiVersion":"` + gvk.GroupVersion().String() + `","metadata":`)
	b.Write(listMeta)
	b.WriteString(`,"items":[`)
	for i, rec := range p.records {
		if i > 0 {
			b.WriteByte(',')
		}
		raw, err := e.json(rec)
		if err != nil {
			return err
		}
		b.Write(raw)
	}
	b.WriteString("]}")
	raw := b.Bytes()
	if e.protobuf {
		if raw, err = e.toProtobuf(raw, gvk); err != nil {
			return err
		}
	}
	write(w, http.StatusOK, e.contentType(), raw)
	return nil
}

// event writes one event of a watch, in JSON.
func (e *encoder) event(w io.Writer, kind string, raw []byte) error {
	line := make([]byte, 0, len(raw)+40)
	line = append(line, `{"type":"`...)
	line = append(line, kind...)
	line = append(line, `","object":`...)
	line = append(line, raw...)
	line = append(line, '}', '\n')
	_, err := w.Write(line)
	return err
}

// clause is one of the media types that a client accepts.
type clause struct {
	mediaType string
	params    map[string]string
}

// accepted lists what a client accepts, in its order.
func accepted(r *http.Request) []clause {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return []clause{{mediaType: "*/*"}}
	}
	var clauses []clause
	for part := range strings.SplitSeq(header, ",") {
		if mediaType, params, err := mime.ParseMediaType(part); err == nil {
			clauses = append(clauses, clause{mediaType, params})
		}
	}
	return clauses
}

func (c clause) json() bool {
	return c.mediaType == "*/*" || c.mediaType == "application/*" || c.mediaType == runtime.ContentTypeJSON
}

func acceptsAggregated(r *http.Request) bool {
	return slices.ContainsFunc(accepted(r), func(c clause) bool {
		return c.json() && c.params["as"] == "APIGroupDiscoveryList" && c.params["g"] == "apidiscovery.k8s.io" && c.params["v"] == "v2"
	})
}

// partial reports whether a clause asks for metadata only, and whether it can be
// served at all.
func (c clause) partial() (partial, ok bool) {
	switch as := c.params["as"]; {
	case as == "":
		return false, true
	case (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") &&
		c.params["g"] == metav1.GroupName && c.params["v"] == "v1":
		return true, true
	}
	return false, false
}

// negotiate picks JSON if the client accepts it, and otherwise protobuf.
func negotiate(r *http.Request, types *Types, res *resource.Resource) (*encoder, error) {
	clauses := accepted(r)
	for _, c := range clauses {
		if partial, ok := c.partial(); ok && c.json() {
			return &encoder{types: types, resource: res, partial: partial}, nil
		}
	}
	for _, c := range clauses {
		if partial, ok := c.partial(); ok && c.mediaType == runtime.ContentTypeProtobuf && !res.Custom {
			return &encoder{types: types, resource: res, partial: partial, protobuf: true}, nil
		}
	}
	return nil, statusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only application/json and, for built-in types, "+runtime.ContentTypeProtobuf+" are served")
}
