// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"strings"
	"unicode/utf8"
)

// Table sets rows in columns below a header of as many cells, as Markdown too
// shows them: the first column to the left, all others to the right.
func Table(header []string, rows [][]string) string {
	widths := make([]int, len(header))
	for i := range widths {
		widths[i] = max(3, utf8.RuneCountInString(header[i]))
		for _, cells := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
	}
	var out strings.Builder
	for _, cells := range append([][]string{header, rule}, rows...) {
		for i, cell := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				out.WriteString("| " + cell + pad + " ")
			} else {
				out.WriteString("| " + pad + cell + " ")
			}
		}
		out.WriteString("|\n")
	}
	return out.String()
}
