// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
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
