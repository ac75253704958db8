// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"fmt"
	"io"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// authRoundTripper adds the credential to requests, and repeats one that the
// server answers with 401.
type authRoundTripper struct {
	link *managed
	auth *authenticator // nil where the link had ended already
	base http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = &authRoundTripper{}

// WrappedRoundTripper lets client-go find the transport underneath.
func (t *authRoundTripper) WrappedRoundTripper() http.RoundTripper { return t.base }

// RoundTrip implements http.RoundTripper.
func (t *authRoundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := t.check(request); err != nil {
		closeBody(request)
		return nil, t.link.wrapError(err)
	}
	if request.Header.Get("Authorization") != "" {
		return t.base.RoundTrip(request)
	}
	c, err := t.auth.credential(request.Context())
	if err != nil {
		closeBody(request)
		return nil, t.link.wrapError(err)
	}
	response, err := t.base.RoundTrip(withCredential(request, c))
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}

	if request.Body != nil && request.Body != http.NoBody && request.GetBody == nil {
		t.auth.renew(c) // for the requests to come, this one cannot be repeated
		return response, nil
	}
	fresh := t.link.replace(request.Context(), c)
	if fresh == nil {
		return response, nil
	}
	again, err := repeat(request, fresh)
	if err != nil {
		return response, nil
	}
	discard(response)
	return t.base.RoundTrip(again)
}

// check refuses requests that must not see the credential: those of an ended
// link, and those to another host, to which a redirect may lead.
func (t *authRoundTripper) check(request *http.Request) error {
	if err := t.link.err(); err != nil {
		return err
	}
	switch request.URL.Scheme {
	case "https", "wss":
	default:
		return fmt.Errorf("%w: a request by %s would show the credential", ErrDenied, request.URL.Scheme)
	}
	if got, want := hostPort(request.URL), t.link.endpoint.hostPort; got != want {
		return fmt.Errorf("%w: a request to %s, but the credential is for %s", ErrDenied, got, want)
	}
	return nil
}

// withCredential returns a copy of the request, as a RoundTripper must not
// change what it is given.
func withCredential(request *http.Request, c *credential) *http.Request {
	if c.authorization == "" {
		return request
	}
	authorized := request.WithContext(request.Context())
	authorized.Header = request.Header.Clone()
	if authorized.Header == nil {
		authorized.Header = http.Header{}
	}
	authorized.Header["Authorization"] = []string{c.authorization}
	return authorized
}

// repeat returns the request as it was before its body was read.
func repeat(request *http.Request, c *credential) (*http.Request, error) {
	again := withCredential(request, c)
	if request.Body == nil || request.Body == http.NoBody {
		return again, nil
	}
	body, err := request.GetBody()
	if err != nil {
		return nil, err
	}
	if again == request {
		again = request.WithContext(request.Context())
	}
	again.Body = body
	return again, nil
}

// discard makes the connection of a response, which is small, free again.
func discard(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, 4<<10)
	_ = response.Body.Close()
}

func closeBody(request *http.Request) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
}
