// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/rand"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// User is the user that a credential authenticates.
type User = authenticationv1.UserInfo

// tokens are the bearer tokens that a server knows.
type tokens struct {
	mu    sync.RWMutex
	known map[string]tokenEntry // guarded by mu
}

type tokenEntry struct {
	user    User
	expires time.Time // never, if zero
}

func (t *tokens) add(token string, user User, expires time.Time) {
	user.Groups = authenticated(user.Groups)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known[token] = tokenEntry{user, expires}
}

func (t *tokens) revoke(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, token)
}

func (t *tokens) find(token string) (User, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	entry, ok := t.known[token]
	if !ok || (!entry.expires.IsZero() && time.Now().After(entry.expires)) {
		return User{}, false
	}
	return entry.user, true
}

// authenticate returns the user of a request, by bearer token or else by client
// certificate.
func (s *Server) authenticate(r *http.Request) (User, bool) {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return s.tokens.find(strings.TrimSpace(token))
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return User{}, false
	}
	leaf := r.TLS.PeerCertificates[0]
	roots := x509.NewCertPool()
	roots.AddCert(s.authority.Load().certificate)
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots:     roots,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return User{}, false
	}
	return User{Username: leaf.Subject.CommonName, Groups: authenticated(leaf.Subject.Organization)}, true
}

// authenticated adds the group of all authenticated users.
func authenticated(groups []string) []string {
	return append(slices.Clone(groups), "system:authenticated")
}

// public reports whether a path needs no authentication.
func public(path string) bool {
	switch path {
	case "/healthz", "/livez", "/readyz", "/version":
		return true
	}
	return false
}

// defaultTokenLifetime is the lifetime of a token if the request sets none.
const defaultTokenLifetime = time.Hour

// serveReview answers requests for resources that are not stored.
func (s *Server) serveReview(w http.ResponseWriter, r *http.Request, t Target, user User) error {
	body, err := s.readTyped(r, t)
	if err != nil {
		return err
	}
	switch review := body.(type) {
	case *authenticationv1.SelfSubjectReview:
		review.Status.UserInfo = user
	case *authorizationv1.SelfSubjectAccessReview:
		review.Status.Allowed = s.allowed(review.Spec.ResourceAttributes)
	case *authenticationv1.TokenRequest:
		if err := s.mint(t, review); err != nil {
			return err
		}
	default:
		return errNoSuchPath
	}
	body.GetObjectKind().SetGroupVersionKind(t.kind())
	writeJSON(w, http.StatusCreated, body)
	return nil
}

// allowed answers whether a request would be allowed. There is no RBAC: only
// faults forbid requests.
func (s *Server) allowed(a *authorizationv1.ResourceAttributes) bool {
	if a == nil {
		return true
	}
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return s.faults.find(Forbidden, attributes{verb: a.Verb, resource: resource}) == nil
}

// mint issues a token for a service account.
func (s *Server) mint(t Target, request *authenticationv1.TokenRequest) error {
	rec, err := s.Get(Target{Resource: t.Resource, Namespace: t.Namespace, Name: t.Name})
	if err != nil {
		return err
	}
	uid, err := uidOf(rec)
	if err != nil {
		return err
	}
	lifetime := defaultTokenLifetime
	if request.Spec.ExpirationSeconds != nil {
		lifetime = time.Duration(*request.Spec.ExpirationSeconds) * time.Second
	}
	request.Spec.ExpirationSeconds = ptr.To(int64(lifetime / time.Second))
	token, expires := rand.Text(), time.Now().Add(lifetime)
	s.tokens.add(token, User{
		Username: "system:serviceaccount:" + t.Namespace + ":" + t.Name,
		UID:      string(uid),
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + t.Namespace},
	}, expires)
	request.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(expires)}
	return nil
}

// readTyped decodes a body whose kind has a Go type.
func (s *Server) readTyped(r *http.Request, t Target) (runtime.Object, error) {
	body, mediaType, err := readBody(r)
	if err != nil {
		return nil, err
	}
	object, err := s.types.scheme.New(t.kind())
	if err != nil {
		return nil, err
	}
	return object, s.decodeTyped(body, mediaType, t.kind(), object)
}
