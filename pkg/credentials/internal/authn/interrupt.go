// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// interrupter is a transport that others use too. It ends its own requests with
// the Connections, by their contexts.
type interrupter struct {
	base    http.RoundTripper
	closing context.Context // the lifetime of the Connections
}

// Share makes the transport the one of the Connections, which others use too.
func (c *Connections) Share(transport http.RoundTripper) {
	c.Shared, c.Transport = true, &interrupter{base: transport, closing: c.closing}
}

var _ utilnet.RoundTripperWrapper = &interrupter{}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (i *interrupter) WrappedRoundTripper() http.RoundTripper { return i.base }

// RoundTrip implements http.RoundTripper.
func (i *interrupter) RoundTrip(req *http.Request) (*http.Response, error) {
	if i.closing.Err() != nil {
		closeBody(req)
		return nil, errEnded
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(i.closing, cancel)
	b := &body{end: func() { stop(); cancel() }, fault: func(err error) error {
		if err == nil || errors.Is(err, io.EOF) || i.closing.Err() == nil || req.Context().Err() != nil {
			return err
		}
		return fmt.Errorf("%w: the access was switched or released", net.ErrClosed)
	}}
	resp, err := i.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		err = b.fault(err)
		b.end()
		return nil, err
	}
	b.original = resp.Body
	resp.Body = b
	if upgraded, ok := b.original.(io.ReadWriteCloser); ok {
		stop()
		stop = context.AfterFunc(i.closing, func() { _ = upgraded.Close() }) // it does not end with the context
		resp.Body = &upgradedBody{b, upgraded}
	}
	return resp, nil
}

// body is the body of a response.
type body struct {
	original io.ReadCloser
	end      func()
	fault    func(error) error // returns the error for the caller
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.original.Read(p)
	if err != nil {
		err = b.fault(err)
		b.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.end()
	return b.original.Close()
}
