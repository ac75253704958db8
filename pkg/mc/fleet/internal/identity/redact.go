// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"net/url"
	"strings"
)

// Redact returns a server's URL without user and password.
func Redact(server string) string {
	at := strings.LastIndex(server, "@")
	if at < 0 {
		return server
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return server[at+1:]
	}
	u.User = nil
	return u.String()
}
