// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"strings"
)

// tracesOf returns what gives a token (a JWT) away wherever it is found: its
// signature, which is in the token however that is cut or quoted, and the whole
// as it is in a Secret.
func tracesOf(token string) []string {
	signature := token[strings.LastIndex(token, ".")+1:]
	return []string{signature, base64.StdEncoding.EncodeToString([]byte(token))}
}
