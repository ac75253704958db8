// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"strings"
)

// tracesOf returns the texts that identify a token (a JWT): its signature, also in
// a truncated or quoted token, and the base64 form, as in a Secret.
func tracesOf(token string) []string {
	signature := token[strings.LastIndex(token, ".")+1:]
	return []string{signature, base64.StdEncoding.EncodeToString([]byte(token))}
}
