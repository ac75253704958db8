// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

const (
	// impersonatedLifetime is the longest lifetime that needs no organization policy.
	impersonatedLifetime = time.Hour

	// maxResponse limits how many bytes of a response are read.
	maxResponse = 1 << 20
)

// obtain requests a token. Errors contain nothing of a credential.
func (p *Plugin) obtain(ctx context.Context, s *source, chain Impersonation) (*oauth2.Token, error) {
	transport := newTransport(ctx, p.retryDelay)
	defer transport.close()
	// The library's token sources take the client from the context.
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: transport})

	scopes := p.Scopes
	if chain.Account != "" {
		scopes = []string{scopeCloudPlatform}
	}
	token, err := p.sourceToken(ctx, s, scopes)
	if err == nil && chain.Account != "" {
		token, err = p.impersonate(ctx, s, token, chain)
	}
	switch {
	case err == nil && token.AccessToken == "":
		return nil, errors.New("the response has no access token")
	case err == nil:
		return token, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	// The library's errors can contain the whole response.
	if failed := transport.lastFailure(); failed != nil {
		return nil, failed
	}
	return nil, fmt.Errorf("%s: %w", s, err)
}

// sourceToken returns a token of the application default credentials.
func (p *Plugin) sourceToken(ctx context.Context, s *source, scopes []string) (*oauth2.Token, error) {
	if s.path == "" {
		return p.metadataToken(ctx, scopes)
	}
	credentials, err := google.CredentialsFromJSONWithTypeAndParams(ctx, s.data, s.Type, google.CredentialsParams{
		Scopes:         scopes,
		UniverseDomain: p.UniverseDomain,
	})
	if err != nil {
		return nil, err
	}
	return credentials.TokenSource.Token()
}

// metadataToken requests a token from the metadata server. The library retries
// for a status of 500 or above, but not for 429.
func (p *Plugin) metadataToken(ctx context.Context, scopes []string) (*oauth2.Token, error) {
	source := google.ComputeTokenSource(p.Account, scopes...)
	for attempt := 0; ; attempt++ {
		token, err := within(ctx, source.Token)
		var failed *metadata.Error
		var missing metadata.NotDefinedError
		switch {
		case err == nil || ctx.Err() != nil:
			return token, err
		case errors.As(err, &missing):
			return nil, fmt.Errorf("it has no service account %q", cmp.Or(p.Account, "default"))
		case !errors.As(err, &failed):
			return nil, err
		case failed.Code != http.StatusTooManyRequests || attempt == retries:
			return nil, fmt.Errorf("status %d: %s", failed.Code, sanitize(failed.Message))
		}
		if err := pause(ctx, p.retryDelay, attempt); err != nil {
			return nil, err
		}
	}
}

// within calls a function that takes no context, and waits for it until the
// context ends. The library's own time limits then end the call in less than a
// minute.
func within[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// impersonate exchanges the token for one of the chain's account, with the method
// generateAccessToken of the IAM Credentials API.
func (p *Plugin) impersonate(ctx context.Context, s *source, token *oauth2.Token, chain Impersonation) (*oauth2.Token, error) {
	type message struct {
		Delegates []string `json:"delegates,omitempty"`
		Scope     []string `json:"scope"`
		Lifetime  string   `json:"lifetime"`
	}
	content := message{Scope: p.Scopes, Lifetime: fmt.Sprintf("%.0fs", impersonatedLifetime.Seconds())}
	for _, delegate := range chain.Delegates {
		content.Delegates = append(content.Delegates, resourceName(delegate))
	}
	body, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	address := p.iamURL(s) + "/v1/" + resourceName(url.PathEscape(chain.Account)) + ":generateAccessToken"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if project := p.quotaProject(s); project != "" {
		request.Header.Set("X-Goog-User-Project", project)
	}
	response, err := oauth2.NewClient(ctx, oauth2.StaticTokenSource(token)).Do(request)
	if err != nil {
		return nil, fmt.Errorf("impersonating %s: %w", chain.Account, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("impersonating %s: status %d", chain.Account, response.StatusCode)
	}
	var result struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
	}
	if json.NewDecoder(io.LimitReader(response.Body, maxResponse)).Decode(&result) != nil {
		return nil, errors.New("invalid response from the IAM Credentials API")
	}
	return &oauth2.Token{AccessToken: result.AccessToken, Expiry: result.ExpireTime}, nil
}

// resourceName returns the API's name of a service account. "-" lets the API
// find the project.
func resourceName(account string) string { return "projects/-/serviceAccounts/" + account }

// iamURL returns a URL without a slash at its end.
func (p *Plugin) iamURL(s *source) string {
	return strings.TrimRight(cmp.Or(p.IAMCredentialsURL, "https://iamcredentials."+p.universe(s)), "/")
}
