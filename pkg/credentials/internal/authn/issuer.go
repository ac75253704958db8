// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// maxClaim limits how many bytes of a claim a description has.
const maxClaim = 256

// Describe returns who issued the token and for which audiences, if it is a JSON
// Web Token that names both, or "". It contains no secret and not the user.
func (c *Credential) Describe() string {
	if c == nil {
		return ""
	}
	parts := strings.Split(strings.TrimPrefix(c.Authorization, "Bearer "), ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer   string `json:"iss"`
		Audience any    `json:"aud"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Issuer == "" {
		return ""
	}
	audiences, ok := claims.Audience.([]any)
	if !ok {
		audiences = []any{claims.Audience}
	}
	var texts []string
	for _, audience := range audiences {
		if text, ok := audience.(string); ok && text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return fmt.Sprintf("token of issuer %q for audience %q", shorten(claims.Issuer), shorten(strings.Join(texts, " ")))
}

func shorten(text string) string {
	if len(text) <= maxClaim {
		return text
	}
	return strings.ToValidUTF8(text[:maxClaim], "") + "…"
}
