// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
)

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
