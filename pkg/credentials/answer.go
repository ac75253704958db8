// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// parseAnswer reads what a plugin printed: an ExecCredential in v1 or v1beta1,
// whichever was asked for. Errors are ErrInvalidOutput and repeat nothing of the
// answer.
func parseAnswer(data []byte, now time.Time) (*authn.Credential, error) {
	answer, err := decodeAnswer(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidOutput, err)
	}
	c := &authn.Credential{}
	token := strings.TrimSpace(answer.Status.Token)
	switch {
	case token != "" && !isHeaderSafe(token):
		return nil, fmt.Errorf("%w: the token has characters that no header may have", ErrInvalidOutput)
	case token != "":
		c.Authorization = "Bearer " + token
	}
	if c.Certificate, err = parseCertificate(answer); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidOutput, err)
	}
	if c.Authorization == "" && c.Certificate == nil {
		return nil, fmt.Errorf("%w: neither a token nor a client certificate", ErrInvalidOutput)
	}

	if answer.Status.ExpirationTimestamp != nil {
		c.Expiry = answer.Status.ExpirationTimestamp.Time
	} else if expiry, ok := plugin.JWTExpiry(token); ok {
		c.Expiry = expiry
	}
	if c.Certificate != nil && (c.Expiry.IsZero() || c.Certificate.Leaf.NotAfter.Before(c.Expiry)) {
		c.Expiry = c.Certificate.Leaf.NotAfter
	}
	if !c.IsValid(now) {
		return nil, fmt.Errorf("%w at %s", ErrExpired, c.Expiry.UTC().Format(time.RFC3339))
	}
	return c, nil
}

func decodeAnswer(data []byte) (*clientauthenticationv1.ExecCredential, error) {
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil, errors.New("nothing on standard output")
	}
	var answer clientauthenticationv1.ExecCredential
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, withoutContent(err)
	}
	switch {
	case answer.Kind != "ExecCredential":
		return nil, errors.New("kind is not ExecCredential")
	case answer.APIVersion != apiVersionV1 && answer.APIVersion != apiVersionV1beta1:
		return nil, fmt.Errorf("apiVersion is neither %s nor %s", apiVersionV1, apiVersionV1beta1)
	case answer.Status == nil:
		return nil, errors.New("there is no status")
	}
	return &answer, nil
}

// withoutContent says where in the JSON the fault is, but not what is there.
func withoutContent(err error) error {
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON, at byte %d", syntax.Offset)
	case errors.As(err, &wrongType):
		return fmt.Errorf("field %q has the wrong type", wrongType.Field)
	}
	return errors.New("a field has a value that cannot be read")
}

// parseCertificate returns nil where the answer has none.
func parseCertificate(answer *clientauthenticationv1.ExecCredential) (*tls.Certificate, error) {
	certificate, key := answer.Status.ClientCertificateData, answer.Status.ClientKeyData
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
		return nil, errors.New("clientCertificateData and clientKeyData are not a certificate and its key in PEM form")
	}
	return &pair, nil
}

// isHeaderSafe tells whether the token consists of visible ASCII characters.
func isHeaderSafe(token string) bool {
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return false
		}
	}
	return true
}
