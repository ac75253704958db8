// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// maxDocument bounds the size of the issuer's document, in bytes.
const maxDocument = 1 << 20

// Trust is what a member's API server needs to accept tokens of the hub.
type Trust struct {
	// Configuration is an AuthenticationConfiguration of apiserver.config.k8s.io/v1 in
	// YAML, for the flag --authentication-config of the member's API server. If that
	// has one already, the entry under jwt is to be added to it.
	Configuration string `json:"configuration"`

	// User is the user of the member that a token of the hub's ServiceAccount gets.
	User string `json:"user"`

	// Warnings are for people.
	Warnings []string `json:"warnings,omitempty"`
}

// authenticationConfiguration is what we need of the type with this name, as the module
// that has it is that of API servers.
type authenticationConfiguration struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	JWT        []jwtAuthenticator `json:"jwt"`
}

type jwtAuthenticator struct {
	Issuer              jwtIssuer            `json:"issuer"`
	ClaimMappings       claimMappings        `json:"claimMappings"`
	UserValidationRules []userValidationRule `json:"userValidationRules"`
}

type userValidationRule struct {
	Expression string `json:"expression"`
	Message    string `json:"message"`
}

type jwtIssuer struct {
	URL                  string   `json:"url"`
	Audiences            []string `json:"audiences"`
	CertificateAuthority string   `json:"certificateAuthority,omitempty"`
}

type claimMappings struct {
	Username struct {
		Claim  string `json:"claim"`
		Prefix string `json:"prefix"`
	} `json:"username"`
}

// AuthenticationConfiguration returns what the API server of the member needs to trust
// the hub, from the document that the hub publishes as an OpenID Connect issuer. It sends
// no request to the member, and changes nothing. Of the options it needs those for
// AccessOIDC.
func AuthenticationConfiguration(ctx context.Context, o Options) (*Trust, error) {
	o.Access = AccessOIDC
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	issuer, err := issuerOf(ctx, o.Hub)
	if err != nil {
		return nil, err
	}
	trust := &Trust{User: o.UsernamePrefix + subjectPrefix + o.ServiceAccount.Namespace + ":" + o.ServiceAccount.Name}
	entry := jwtAuthenticator{Issuer: jwtIssuer{URL: issuer, Audiences: []string{o.Audience}}}
	entry.UserValidationRules = []userValidationRule{{
		Expression: fmt.Sprintf("user.username == '%s'", trust.User), Message: "not the ServiceAccount of the hub that is registered",
	}}
	entry.ClaimMappings.Username.Claim, entry.ClaimMappings.Username.Prefix = "sub", o.UsernamePrefix
	hub := rest.AnonymousClientConfig(o.Hub)
	if err := rest.LoadTLSFiles(hub); err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	authority, warning := tryIssuer(ctx, issuer, hub)
	entry.Issuer.CertificateAuthority = authority
	if warning != "" {
		trust.Warnings = append(trust.Warnings, warning)
	}
	text, err := yaml.Marshal(authenticationConfiguration{
		APIVersion: "apiserver.config.k8s.io/v1", Kind: "AuthenticationConfiguration", JWT: []jwtAuthenticator{entry},
	})
	trust.Configuration = string(text)
	return trust, err
}

// issuerOf returns the URL of the hub's issuer.
func issuerOf(ctx context.Context, hub *rest.Config) (string, error) {
	client, err := rest.HTTPClientFor(hub)
	if err != nil {
		return "", fmt.Errorf("hub: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(hub)
	if err != nil {
		return "", fmt.Errorf("hub: %w", err)
	}
	code, body, err := get(ctx, client, base.JoinPath(".well-known/openid-configuration").String())
	document := struct {
		Issuer string `json:"issuer"`
	}{}
	switch {
	case err != nil:
		return "", fmt.Errorf("hub: reading its issuer: %w", err)
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		return "", fmt.Errorf("hub: reading its issuer is forbidden: it needs the ClusterRole system:service-account-issuer-discovery")
	case code != http.StatusOK || json.Unmarshal(body, &document) != nil:
		return "", fmt.Errorf("hub: it publishes no issuer: the response has status %d", code)
	}
	if issuer, err := url.Parse(document.Issuer); err != nil || issuer.Scheme != "https" || issuer.Host == "" {
		return "", fmt.Errorf("hub: its issuer %q is no https URL, which members need: set --service-account-issuer of its API server", document.Issuer)
	}
	return document.Issuer, nil
}

// tryIssuer reads the issuer and its keys as a member will, without credentials. It
// returns the certificate authority, "" for that of the system, and a warning if that
// did not work from here.
func tryIssuer(ctx context.Context, issuer string, hub *rest.Config) (authority, warning string) {
	target := strings.TrimRight(issuer, "/") + "/.well-known/openid-configuration"
	body, warning := []byte(nil), ""
	for _, authority = range []string{string(hub.CAData), ""} {
		var untrusted bool
		if body, warning, untrusted = tryDocument(ctx, target, authority); !untrusted {
			break
		}
	}
	if warning != "" {
		if sameHost(issuer, hub.Host) {
			authority = string(hub.CAData)
		}
		return authority, warning
	}
	document := struct {
		Keys string `json:"jwks_uri"`
	}{}
	if json.Unmarshal(body, &document) != nil || document.Keys == "" {
		return authority, "the document of the issuer has no jwks_uri: " + target
	}
	if _, warning, _ = tryDocument(ctx, document.Keys, authority); warning != "" {
		warning += "; if that is the wrong address, set --service-account-jwks-uri of the hub's API server"
	}
	return authority, warning
}

// tryDocument reads a document. It reports whether the authority is not that of the
// server.
func tryDocument(ctx context.Context, target, authority string) (body []byte, warning string, untrusted bool) {
	config := &rest.Config{Host: target, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(authority)}, Timeout: requestTimeout}
	client, err := rest.HTTPClientFor(config)
	code := 0
	if err == nil {
		code, body, err = get(ctx, client, target)
	}
	switch {
	case err != nil:
		invalid := (*tls.CertificateVerificationError)(nil)
		return nil, fmt.Sprintf("make sure that the API server of the member can read %s, which could not be read from here: %v", target, err), errors.As(err, &invalid)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return nil, "the hub does not let API servers of members read its issuer: " +
			"kubectl create clusterrolebinding issuer-discovery --clusterrole=system:service-account-issuer-discovery --group=system:unauthenticated", false
	case code != http.StatusOK:
		return nil, fmt.Sprintf("make sure that the API server of the member can read %s, which has status %d from here", target, code), false
	}
	return body, "", false
}

func sameHost(one, other string) bool {
	a, errA := url.Parse(one)
	b, errB := url.Parse(other)
	return errA == nil && errB == nil && a.Hostname() == b.Hostname()
}

func get(ctx context.Context, client *http.Client, target string) (code int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	noRedirect := *client
	noRedirect.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := noRedirect.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxDocument))
	return response.StatusCode, body, err
}
