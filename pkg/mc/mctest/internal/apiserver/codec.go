// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// maxBody is the largest size of a request that a real server accepts.
const maxBody = 3 << 20

func readBody(r *http.Request) (body []byte, mediaType string, err error) {
	body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, "", apierrors.NewBadRequest(err.Error())
	}
	if len(body) > maxBody {
		return nil, "", apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	contentType := r.Header.Get("Content-Type")
	if contentType == "" {
		return body, runtime.ContentTypeJSON, nil
	}
	mediaType, _, err = mime.ParseMediaType(contentType)
	if err != nil {
		return nil, "", unsupportedMediaType(contentType)
	}
	return body, mediaType, nil
}

func unsupportedMediaType(mediaType string) error {
	return statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format: "+mediaType)
}

// unmarshal decodes JSON or YAML.
func unmarshal(body []byte, mediaType string, into any) (err error) {
	switch mediaType {
	case runtime.ContentTypeJSON:
	case runtime.ContentTypeYAML:
		body, err = yaml.YAMLToJSON(body)
	default:
		return unsupportedMediaType(mediaType)
	}
	if err == nil {
		err = utiljson.Unmarshal(body, into)
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// decodeTyped decodes a body into a Go type.
func (s *Server) decodeTyped(body []byte, mediaType string, kind schema.GroupVersionKind, into runtime.Object) error {
	if mediaType != runtime.ContentTypeProtobuf {
		return unmarshal(body, mediaType, into)
	}
	if _, _, err := s.types.protobuf.Decode(body, &kind, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// readObject decodes the body of a create or update.
func (s *Server) readObject(r *http.Request, t Target) (*unstructured.Unstructured, error) {
	body, mediaType, err := readBody(r)
	if err != nil {
		return nil, err
	}
	res := t.Resource
	object := &unstructured.Unstructured{}
	if mediaType == runtime.ContentTypeProtobuf && !res.Custom {
		typed, gvk, err := s.types.protobuf.Decode(body, &res.GroupVersionKind, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		typed.GetObjectKind().SetGroupVersionKind(*gvk)
		if object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	} else if err := unmarshal(body, mediaType, &object.Object); err != nil {
		return nil, err
	}
	if object.Object == nil {
		return nil, apierrors.NewBadRequest("the body of the request is empty")
	}
	return object, nil
}

// accept brings an object of a request into its stored form: its kind is the
// resource's, and fields that the Go type does not have are dropped.
func (s *Server) accept(object *unstructured.Unstructured, res *resource.Resource) error {
	if version := object.GetAPIVersion(); version == "" {
		object.SetAPIVersion(res.GroupVersion().String())
	} else if version != res.GroupVersion().String() {
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)",
			version, res.GroupVersion()))
	}
	if kind := object.GetKind(); kind == "" {
		object.SetKind(res.Kind)
	} else if kind != res.Kind && res.Custom {
		return apierrors.NewInvalid(schema.GroupKind{Group: res.Group, Kind: kind}, object.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("kind"), kind, "must be "+res.Kind)})
	} else if kind != res.Kind {
		return apierrors.NewBadRequest(fmt.Sprintf("the kind in the data (%s) does not match the expected kind (%s)", kind, res.Kind))
	}
	if _, ok := object.Object["metadata"].(map[string]any); !ok {
		object.Object["metadata"] = map[string]any{}
	}
	if res.Custom {
		var m metav1.ObjectMeta
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object["metadata"].(map[string]any), &m); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return nil
	}
	typed, err := s.types.scheme.New(res.GroupVersionKind)
	if err != nil {
		return err
	}
	if err := fromUnstructured(object.Object, typed); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", res.Kind, res.Version, res.Kind, err))
	}
	object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	return err
}

// fromUnstructured converts directly, or over JSON where the types of the values
// do not match exactly.
func fromUnstructured(object map[string]any, into runtime.Object) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, into); err == nil {
		return nil
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// Decode reads a stored object in the version of a resource.
func Decode(rec *store.Record, res *resource.Resource) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(rec.JSON, &object.Object); err != nil {
		return nil, err
	}
	convert(object, res)
	return object, nil
}

// uidOf reads the UID of a stored object.
func uidOf(rec *store.Record) (types.UID, error) {
	var object metav1.PartialObjectMetadata
	err := json.Unmarshal(rec.JSON, &object)
	return object.UID, err
}

// coreEventFields are the fields of an Event that have other names in
// events.k8s.io.
var coreEventFields = map[string]string{
	"involvedObject":     "regarding",
	"message":            "note",
	"source":             "deprecatedSource",
	"firstTimestamp":     "deprecatedFirstTimestamp",
	"lastTimestamp":      "deprecatedLastTimestamp",
	"count":              "deprecatedCount",
	"reportingComponent": "reportingController",
}

// convert converts an object to the version of a resource. Versions of a kind
// differ only in their name, except those of Event.
func convert(object *unstructured.Unstructured, res *resource.Resource) {
	version := res.GroupVersion().String()
	from := object.GetAPIVersion()
	if from == version {
		return
	}
	object.SetAPIVersion(version)
	if res.Kind != "Event" || res.Custom {
		return
	}
	for core, renamed := range coreEventFields {
		source, target := core, renamed
		if version == "v1" {
			source, target = renamed, core
		}
		if value, ok := object.Object[source]; ok {
			object.Object[target] = value
			delete(object.Object, source)
		}
	}
}
