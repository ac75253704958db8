// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

const (
	// impersonatedLifetime is the longest that needs no policy of an organisation.
	impersonatedLifetime = time.Hour

	// maxResponse is how much of a response is read.
	maxResponse = 1 << 20
)

// impersonate exchanges the token for one of the chain's account, through the
// method generateAccessToken of the IAM Credentials API.
func (p *Plugin) impersonate(ctx context.Context, s *source, token *oauth2.Token, chain Impersonation) (*oauth2.Token, error) {
	type message struct {
		Delegates []string `json:"delegates,omitempty"`
		Scope     []string `json:"scope"`
		Lifetime  string   `json:"lifetime"`
	}
	wanted := message{Scope: p.Scopes, Lifetime: fmt.Sprintf("%.0fs", impersonatedLifetime.Seconds())}
	for _, delegate := range chain.Delegates {
		wanted.Delegates = append(wanted.Delegates, resourceName(delegate))
	}
	body, err := json.Marshal(wanted)
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
	var answer struct {
		AccessToken string    `json:"accessToken"`
		ExpireTime  time.Time `json:"expireTime"`
	}
	if json.NewDecoder(io.LimitReader(response.Body, maxResponse)).Decode(&answer) != nil {
		return nil, errors.New("the IAM Credentials API gave an answer that cannot be read")
	}
	return &oauth2.Token{AccessToken: answer.AccessToken, Expiry: answer.ExpireTime}, nil
}

// resourceName is how the API calls a service account. It finds the project by
// itself.
func resourceName(account string) string { return "projects/-/serviceAccounts/" + account }

// iamURL has no slash at its end.
func (p *Plugin) iamURL(s *source) string {
	if p.IAMCredentialsURL != "" {
		return strings.TrimRight(p.IAMCredentialsURL, "/")
	}
	return "https://iamcredentials." + p.universe(s)
}
