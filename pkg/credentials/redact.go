// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import "github.com/rollcall-dev/rollcall/pkg/credentials/internal/redact"

// Redact returns the text without what has the shape of a token or a key. Errors of this
// package need no redaction. It is for texts of clusters and plugins that a program
// prints, which may repeat a credential.
func Redact(text string) string { return redact.Text(text) }
