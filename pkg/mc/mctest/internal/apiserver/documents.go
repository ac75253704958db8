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

// Version is what servers report of themselves.
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

// serveDocument answers what concerns no resource.
func (s *Server) serveDocument(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz":
		write(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok"))
		return
	case "/version", "/version/":
		writeJSON(w, http.StatusOK, Version)
		return
	case "/openapi/v3":
		writeJSON(w, http.StatusOK, map[string]any{"paths": map[string]any{}})
		return
	}
	if r.URL.Path != "/api" && r.URL.Path != "/apis" && !strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasPrefix(r.URL.Path, "/apis/") {
		writeError(w, errNoSuchPath)
		return
	}
	root := strings.Count(strings.Trim(r.URL.Path, "/"), "/") == 0
	aggregated := root && acceptsAggregated(r)
	raw, err := s.catalog.Load().Document(r.URL.Path, aggregated)
	switch {
	case err != nil:
		writeError(w, err)
		return
	case raw == nil:
		writeError(w, errNoSuchPath)
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
