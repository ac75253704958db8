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

	"golang.org/x/oauth2"
)

const (
	// impersonatedLifetime is the longest lifetime that needs no organization policy.
	impersonatedLifetime = time.Hour

	// maxResponse limits how many bytes of a response are read.
	maxResponse = 1 << 20
)

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
