// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	kjson "sigs.k8s.io/json"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// errTooLong is the error of a plugin that printed more.
var errTooLong = fmt.Errorf("%w: more than %d bytes on standard output", errdefs.ErrInvalidOutput, rules.MaxOutput)

// outputBuffer takes rules.MaxOutput bytes, then calls full and takes no more.
type outputBuffer struct {
	// Not embedded: its ReadFrom would pass the limit.
	buffer bytes.Buffer
	full   func()
}

func (b *outputBuffer) Write(p []byte) (int, error) {
	if b.buffer.Len()+len(p) > rules.MaxOutput {
		b.full()
		return 0, errTooLong
	}
	return b.buffer.Write(p)
}

// parseOutput parses what a plugin printed: an ExecCredential in v1 or v1beta1,
// whichever was requested. As in client-go, fields have their exact names and
// unknown ones are ignored. Errors are ErrInvalidOutput and repeat nothing of it.
func parseOutput(data []byte, now time.Time) (*authn.Credential, error) {
	output, err := decodeOutput(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errdefs.ErrInvalidOutput, err)
	}
	c := &authn.Credential{}
	token := strings.TrimSpace(output.Status.Token)
	switch {
	case token != "" && !rules.IsHeaderSafe(token):
		return nil, fmt.Errorf("%w: the token has characters that are not allowed in a header", errdefs.ErrInvalidOutput)
	case token != "":
		c.Authorization = "Bearer " + token
	}
	if c.Certificate, err = parseCertificate(output); err != nil {
		return nil, fmt.Errorf("%w: %w", errdefs.ErrInvalidOutput, err)
	}
	if c.Authorization == "" && c.Certificate == nil {
		return nil, fmt.Errorf("%w: neither a token nor a client certificate", errdefs.ErrInvalidOutput)
	}

	if output.Status.ExpirationTimestamp != nil {
		c.Expiry = output.Status.ExpirationTimestamp.Time
	} else if expiry, ok := plugin.JWTExpiry(token); ok {
		c.Expiry = expiry
	}
	if c.Certificate != nil && (c.Expiry.IsZero() || c.Certificate.Leaf.NotAfter.Before(c.Expiry)) {
		c.Expiry = c.Certificate.Leaf.NotAfter
	}
	if !c.IsValid(now) {
		return nil, fmt.Errorf("%w at %s", errdefs.ErrExpired, c.Expiry.UTC().Format(time.RFC3339))
	}
	return c, nil
}

func decodeOutput(data []byte) (*clientauthenticationv1.ExecCredential, error) {
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil, errors.New("nothing on standard output")
	}
	var output clientauthenticationv1.ExecCredential
	if err := rules.DecodeKnown(data, &output); err != nil {
		return nil, withoutContent(err)
	}
	switch {
	case output.Kind != "ExecCredential":
		return nil, errors.New("kind is not ExecCredential")
	case output.APIVersion != rules.APIVersionV1 && output.APIVersion != rules.APIVersionV1beta1:
		return nil, fmt.Errorf("apiVersion is neither %s nor %s", rules.APIVersionV1, rules.APIVersionV1beta1)
	case output.Status == nil:
		return nil, errors.New("there is no status")
	}
	return &output, nil
}

// withoutContent returns an error that tells the position of the fault in the
// JSON, but not its content.
func withoutContent(err error) error {
	if syntax, offset := kjson.SyntaxErrorOffset(err); syntax {
		return fmt.Errorf("not JSON, at byte %d", offset)
	}
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("field %q has the wrong type", wrongType.Field)
	}
	if _, twice := errors.AsType[kjson.FieldError](err); twice {
		return errors.New("a field is given twice")
	}
	return errors.New("a field has a value that cannot be read")
}

// parseCertificate returns nil if the output has none.
func parseCertificate(output *clientauthenticationv1.ExecCredential) (*tls.Certificate, error) {
	certificate, key := output.Status.ClientCertificateData, output.Status.ClientKeyData
	switch {
	case certificate == "" && key == "":
		return nil, nil
	case certificate == "":
		return nil, errors.New("clientKeyData without clientCertificateData")
	case key == "":
		return nil, errors.New("clientCertificateData without clientKeyData")
	}
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		return nil, errors.New("clientCertificateData and clientKeyData are not a certificate and its key in PEM format")
	}
	return &pair, nil
}
