// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	goruntime "runtime"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
)

// Version is the version that servers report.
var Version = version.Info{
	Major:        "1",
	Minor:        "37",
	GitVersion:   "v1.37.2+mctest",
	GitTreeState: "clean",
	GoVersion:    goruntime.Version(),
	Compiler:     goruntime.Compiler,
	Platform:     goruntime.GOOS + "/" + goruntime.GOARCH,
}

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// serveDocument answers requests that concern no resource.
func (s *Server) serveDocument(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz":
		write(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok"))
		return
	case "/version", "/version/":
		writeJSON(w, http.StatusOK, Version)
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	aggregated := (path == "/api" || path == "/apis") && acceptsAggregated(r)
	raw, err := s.catalog.Load().Document(path, aggregated)
	switch {
	case err != nil:
		writeError(w, err)
		return
	case raw == nil:
		s.serveUnknown(w, r)
		return
	}
	contentType := runtime.ContentTypeJSON
	if aggregated {
		contentType = aggregatedType
		tag := fmt.Sprintf("\"%X\"", sha256.Sum256(raw))
		w.Header().Set("ETag", tag)
		w.Header().Set("Vary", "Accept")
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	write(w, http.StatusOK, contentType, raw)
}

// serveUnknown answers 404: in JSON within a group that exists, and in plain
// text elsewhere.
func (s *Server) serveUnknown(w http.ResponseWriter, r *http.Request) {
	if rest, ok := strings.CutPrefix(r.URL.Path, "/apis/"); ok {
		group, _, _ := strings.Cut(rest, "/")
		if raw, err := s.catalog.Load().Document("/apis/"+group, false); err == nil && raw != nil {
			writeError(w, errNoSuchPath)
			return
		}
	}
	http.NotFound(w, r)
}
