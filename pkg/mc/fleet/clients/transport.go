// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// transport sends the requests of clients to the connection that their profile has at
// the moment. It connects the cluster if it is not connected.
type transport struct {
	clients *Clients
	key     inventory.Key
	server  *url.URL // for which the clients were made
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	r, conn, err := t.clients.acquire(request.Context(), t.key)
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	response, err := conn.transport.RoundTrip(moved(request, t.server, conn.server))
	if err != nil {
		r.release()
		return nil, r.explain(err)
	}
	if response.StatusCode == http.StatusUnauthorized {
		r.credentialsRefused()
	}
	if response.Body == http.NoBody {
		r.release()
		return response, nil
	}
	body := &body{ReadCloser: response.Body, release: sync.OnceFunc(r.release)}
	if writer, ok := response.Body.(io.Writer); ok { // an upgraded connection
		response.Body = &upgradedBody{body, writer}
	} else {
		response.Body = body
	}
	return response, nil
}

// explain adds why the connection was closed, if that is known, to the error of a
// request.
func (r *reference) explain(err error) error {
	r.clients.mu.Lock()
	defer r.clients.mu.Unlock()
	if !r.dropped {
		return err
	}
	if reason := r.clients.lookup(r.key); reason != nil {
		return fmt.Errorf("%w: %w", reason, err)
	}
	return err
}

// moved returns the request with the address of the server to instead of that of the
// server from. A request to any other host is returned as it is: the Access denies it.
func moved(request *http.Request, from, to *url.URL) *http.Request {
	u := *request.URL
	if *from == *to || u.Host != from.Host || u.Scheme != from.Scheme {
		return request
	}
	path, below := strings.CutPrefix(u.Path, from.Path)
	escaped, ok := strings.CutPrefix(u.EscapedPath(), from.EscapedPath())
	if !below || !ok || !strings.HasPrefix(path, "/") {
		return request
	}
	u.Scheme, u.Host, u.Path, u.RawPath = to.Scheme, to.Host, to.Path+path, to.EscapedPath()+escaped
	request = request.WithContext(request.Context()) // a copy: a RoundTripper must not change a request
	request.URL, request.Host = &u, ""
	return request
}

// body is the body of a response. The request is under way until it ends.
type body struct {
	io.ReadCloser
	release func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.release()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// upgradedBody is the body of a response that upgrades the connection.
type upgradedBody struct {
	*body
	io.Writer
}
