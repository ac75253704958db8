// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
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
