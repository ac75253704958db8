// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	goruntime "runtime"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.RLock()
	defer s.requests.RUnlock()
	if s.ctx.Err() != nil { // after Close
		panic(http.ErrAbortHandler)
	}
	req := parse(r)
	s.counters.request(req.attributes)
	if !s.injectFaults(w, r, &req) {
		return
	}
	user, known := s.authenticate(r)
	if !known && !public(r.URL.Path) {
		writeError(w, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	if req.resource.Resource == "" {
		s.serveDocument(w, r)
		return
	}
	if err := s.serveResource(w, r, &req, user); err != nil {
		writeError(w, err)
	}
}

func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, req *request, user User) error {
	res := s.catalog.Load().Find(req.resource)
	if res == nil {
		return errNoSuchPath
	}
	if inNamespace := req.namespace != ""; inNamespace != res.Namespaced && (inNamespace || req.name != "") {
		return errNoSuchPath
	}
	t := Target{Resource: res, Namespace: req.namespace, Name: req.name, Subresource: req.subresource}
	if !t.hasSubresource() {
		return errNoSuchPath
	}
	if !t.allows(req.verb) {
		return errMethod
	}
	enc, err := negotiate(r, s.types, res)
	if err != nil {
		return err
	}
	if res.Virtual || t.Subresource == "token" {
		return s.serveReview(w, r, t, user)
	}
	switch req.verb {
	case "get":
		rec, err := s.Get(t)
		return enc.respond(w, http.StatusOK, rec, err)
	case "list":
		return s.serveList(w, r, t, enc)
	case "watch":
		return s.serveWatch(w, r, req, t, enc)
	case "create":
		return s.serveCreate(w, r, t, enc)
	case "update":
		return s.serveUpdate(w, r, t, enc)
	case "patch":
		return s.servePatch(w, r, t, enc)
	case "delete":
		return s.serveDelete(w, r, t, enc)
	case "deletecollection":
		return s.serveDeleteCollection(w, r, t, enc)
	}
	return errMethod
}

// Errors of requests for what the server does not have.
var (
	errNoSuchPath = withDetails(statusError(http.StatusNotFound, metav1.StatusReasonNotFound,
		"the server could not find the requested resource"))
	errMethod = withDetails(statusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource"))
)

// parameters decodes the query into options.
func parameters(r *http.Request, into runtime.Object) error {
	if err := metainternalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// manager returns the field manager: that of the request's options, or else the
// client's program.
func manager(r *http.Request, name string) string {
	if name != "" {
		return name
	}
	agent, _, _ := strings.Cut(r.UserAgent(), "/")
	return agent[:min(len(agent), validation.FieldManagerMaxLength)]
}

func (s *Server) serveCreate(w http.ResponseWriter, r *http.Request, t Target, enc *encoder) error {
	var options metav1.CreateOptions
	if err := parameters(r, &options); err != nil {
		return err
	}
	if err := invalidOptions("CreateOptions", validation.ValidateCreateOptions(&options)); err != nil {
		return err
	}
	object, err := s.readObject(r, t)
	if err != nil {
		return err
	}
	rec, err := s.Create(t, object, WriteOptions{
		DryRun:  len(options.DryRun) > 0,
		Manager: manager(r, options.FieldManager),
	})
	return enc.respond(w, http.StatusCreated, rec, err)
}

func (s *Server) serveUpdate(w http.ResponseWriter, r *http.Request, t Target, enc *encoder) error {
	var options metav1.UpdateOptions
	if err := parameters(r, &options); err != nil {
		return err
	}
	if err := invalidOptions("UpdateOptions", validation.ValidateUpdateOptions(&options)); err != nil {
		return err
	}
	object, err := s.readObject(r, t)
	if err != nil {
		return err
	}
	rec, err := s.Update(t, object, WriteOptions{
		DryRun:  len(options.DryRun) > 0,
		Manager: manager(r, options.FieldManager),
	})
	return enc.respond(w, http.StatusOK, rec, err)
}

func (s *Server) readDeleteOptions(r *http.Request, t Target) (*metav1.DeleteOptions, error) {
	body, mediaType, err := readBody(r)
	if err != nil {
		return nil, err
	}
	options := &metav1.DeleteOptions{}
	if len(body) > 0 {
		err = s.decodeTyped(body, mediaType, t.Resource.GroupVersion().WithKind("DeleteOptions"), options)
	} else {
		err = parameters(r, options)
	}
	if err != nil {
		return nil, err
	}
	return options, invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(options))
}

func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request, t Target, enc *encoder) error {
	options, err := s.readDeleteOptions(r, t)
	if err != nil {
		return err
	}
	rec, gone, err := s.Delete(t, options)
	if err != nil || !gone {
		return enc.respond(w, http.StatusOK, rec, err)
	}
	uid, _ := uidOf(rec)
	writeJSON(w, http.StatusOK, &metav1.Status{
		TypeMeta: statusKind,
		Status:   metav1.StatusSuccess,
		Details:  &metav1.StatusDetails{Name: t.Name, Group: t.Resource.Group, Kind: t.Resource.Plural, UID: uid},
	})
	return nil
}

func (s *Server) serveDeleteCollection(w http.ResponseWriter, r *http.Request, t Target, enc *encoder) error {
	var list metainternal.ListOptions
	if err := parameters(r, &list); err != nil {
		return err
	}
	options, err := s.readDeleteOptions(r, t)
	if err != nil {
		return err
	}
	records, err := s.DeleteCollection(t, options, &list)
	if err != nil {
		return err
	}
	return enc.list(w, &Page{records: records, revision: s.store.Revision()})
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, t Target, enc *encoder) error {
	var options metainternal.ListOptions
	if err := parameters(r, &options); err != nil {
		return err
	}
	p, err := s.List(t, &options)
	if err != nil {
		return err
	}
	return enc.list(w, p)
}

// respond writes an object, or returns the error.
func (e *encoder) respond(w http.ResponseWriter, code int, rec *store.Record, err error) error {
	if err != nil {
		return err
	}
	raw, err := e.object(rec)
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", e.resource.Plural, rec.Key(), err)
	}
	write(w, code, e.contentType(), raw)
	return nil
}

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
