// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// authRoundTripper adds the credential to requests, and repeats one that the
// server answers with 401.
type authRoundTripper struct {
	link *managed
	base http.RoundTripper // nil for the link's own connections
}

var _ utilnet.RoundTripperWrapper = &authRoundTripper{}

// WrappedRoundTripper lets client-go find the transport underneath.
func (t *authRoundTripper) WrappedRoundTripper() http.RoundTripper {
	if t.base != nil {
		return t.base
	}
	_, wire, err := t.link.use()
	if err != nil {
		return nil
	}
	return wire.transport
}

// RoundTrip implements http.RoundTripper.
func (t *authRoundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	auth, _, err := t.link.use()
	if err == nil {
		err = t.check(request)
	}
	if err != nil {
		closeBody(request)
		return nil, t.link.wrapError(err)
	}
	if request.Header.Get("Authorization") != "" {
		return t.send(request, request)
	}
	c, err := auth.credential(request.Context())
	if err != nil {
		closeBody(request)
		return nil, t.link.wrapError(err)
	}
	response, err := t.send(withCredential(request, c), request)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}

	if !isRepeatable(request) {
		auth.renew(c) // for the requests to come
		return response, nil
	}
	fresh := auth.replace(request.Context(), c)
	if fresh == nil {
		return response, nil
	}
	again, err := withBody(withCredential(request, fresh), request)
	if err != nil {
		return response, nil
	}
	discard(response)
	return t.send(again, request)
}

// send makes the request on the connections there are, and once more where
// these were replaced before it was sent. The original is the request as the
// caller gave it.
func (t *authRoundTripper) send(request, original *http.Request) (*http.Response, error) {
	if t.base != nil {
		return t.base.RoundTrip(request)
	}
	for attempt := 1; ; attempt++ {
		_, wire, err := t.link.use()
		if err != nil {
			closeBody(request)
			return nil, t.link.wrapError(err)
		}
		response, err := wire.transport.RoundTrip(request)
		if err == nil || request.Context().Err() != nil {
			return response, err
		}
		if errors.Is(err, ErrReleased) || errors.Is(err, ErrClosed) {
			// No connection was opened for it. A request that was under way has
			// the error of its connection: the server may have acted on it.
			return nil, t.link.wrapError(err)
		}
		if !errors.Is(err, errRewired) || attempt > 1 || !isRepeatable(original) {
			return nil, err
		}
		if request, err = withBody(request, original); err != nil {
			return nil, err
		}
	}
}

// check refuses requests that must not see the credential: those in clear, and
// those to another host, to which a redirect may lead.
func (t *authRoundTripper) check(request *http.Request) error {
	switch request.URL.Scheme {
	case "https", "wss":
	default:
		if t.link.endpoint.plain {
			break // the provider allows it
		}
		return fmt.Errorf("%w: a request by %s would show the credential", ErrDenied, request.URL.Scheme)
	}
	if request.URL.Host == t.link.endpoint.host {
		return nil
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

// isRepeatable tells whether the request's body can be read again.
func isRepeatable(request *http.Request) bool {
	return request.Body == nil || request.Body == http.NoBody || request.GetBody != nil
}

// withBody returns a copy of the request with the body of the original, which
// is repeatable, from the start.
func withBody(request, original *http.Request) (*http.Request, error) {
	again := request.WithContext(request.Context())
	if original.GetBody == nil {
		return again, nil
	}
	body, err := original.GetBody()
	if err != nil {
		return nil, err
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
