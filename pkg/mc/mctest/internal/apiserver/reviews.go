// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/rand"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

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
