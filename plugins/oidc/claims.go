// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// claims are the relevant claims of a token.
type claims struct {
	Subject   string    `json:"sub"`
	Audiences audiences `json:"aud"`
}

// audiences is the claim "aud": a text or a list.
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// claimsOf returns the claims of a JSON Web Token. The signature is not verified:
// clusters do that.
func claimsOf(token string) (*claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("not a JSON Web Token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var c claims
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return nil, errors.New("not a JSON Web Token")
	}
	return &c, nil
}

// check returns the token as a credential if it is for this audience and for no
// other, and has not expired.
func check(token, audience string) (*plugin.Credential, error) {
	c, err := claimsOf(token)
	if err != nil {
		return nil, fmt.Errorf("the token is %w", err)
	}
	if len(c.Audiences) != 1 || c.Audiences[0] != audience {
		return nil, fmt.Errorf("the token is for %s, it must be for audience %q only", c.Audiences, audience)
	}
	expiry, found := plugin.JWTExpiry(token)
	switch {
	case !found:
		return nil, errors.New("the token has no expiry")
	case !time.Now().Before(expiry):
		return nil, fmt.Errorf("the token expired at %s", expiry.UTC().Format(time.RFC3339))
	}
	return &plugin.Credential{Token: token, Expiry: expiry}, nil
}

// String returns the audiences for errors.
func (a audiences) String() string {
	switch len(a) {
	case 0:
		return "no audience"
	case 1:
		return fmt.Sprintf("audience %q", a[0])
	}
	return fmt.Sprintf("audiences %q", []string(a))
}

// serviceAccount is a service account of the hub.
type serviceAccount struct {
	namespace, name string
}

// String returns the format of --service-account.
func (a serviceAccount) String() string { return a.namespace + "/" + a.name }

func parseServiceAccount(text string) (serviceAccount, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return serviceAccount{}, fmt.Errorf("%q is not namespace/name of a service account", text)
	}
	return serviceAccount{namespace, name}, nil
}

// ownerOf returns the service account that the token belongs to.
func ownerOf(token string) (serviceAccount, error) {
	c, err := claimsOf(token)
	if err != nil {
		return serviceAccount{}, err
	}
	subject, found := strings.CutPrefix(c.Subject, "system:serviceaccount:")
	if !found {
		return serviceAccount{}, errors.New("not a token of a service account")
	}
	return parseServiceAccount(strings.Replace(subject, ":", "/", 1))
}
