// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package command

import "testing"

func TestControlCharactersAreEscaped(t *testing.T) {
	for _, test := range []struct{ name, text, clean, line string }{
		{"plain text stays", "✗ é a b", "✗ é a b", "✗ é a b"},
		{"escape sequences", "\x1b[31mred\u009b0m\a", `\x1b[31mred\u009b0m\a`, `\x1b[31mred\u009b0m\a`},
		{"line breaks and tabs", "a\n\tb\r\nc", "a\n\tb\\r\nc", "a; b; c"},
		{"the direction of text", "a\u202eb", `a\u202eb`, `a\u202eb`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Clean(test.text); got != test.clean {
				t.Errorf("Clean: %q, not %q", got, test.clean)
			}
			if got := OneLine(test.text); got != test.line {
				t.Errorf("OneLine: %q, not %q", got, test.line)
			}
		})
	}
}
