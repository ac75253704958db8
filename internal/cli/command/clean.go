// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strconv"
	"strings"
	"unicode"
)

// Clean returns the text with control characters as Go escapes them: clusters, plugins and
// authors of profiles choose parts of what is printed, and must not control the terminal.
// Line breaks and tabs stay.
func Clean(text string) string {
	return clean(text, "\n\t")
}

// OneLine is Clean for a text that must not have line breaks.
func OneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return clean(strings.Join(lines, "; "), "")
}

func clean(text, allowed string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsGraphic(r) || strings.ContainsRune(allowed, r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
