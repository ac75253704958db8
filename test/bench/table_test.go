// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"unicode/utf8"
)

// header is the first line of the table.
var header = []string{"", "bare", "rollcall", "compared", "over the rounds", "goal", ""}

// table sets rows in columns, as Markdown too shows them.
func table(rows []row) string {
	lines := [][]string{header}
	for i := range rows {
		lines = append(lines, rows[i].cells())
	}
	widths := make([]int, len(header))
	for _, cells := range lines {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for n, cells := range lines {
		line(&out, cells, widths)
		if n == 0 {
			rule := make([]string, len(widths))
			for i, width := range widths {
				rule[i] = strings.Repeat("-", max(width, 3))
			}
			line(&out, rule, widths)
		}
	}
	return out.String()
}

func line(out *strings.Builder, cells []string, widths []int) {
	for i, cell := range cells {
		pad := strings.Repeat(" ", max(widths[i], 3)-utf8.RuneCountInString(cell))
		out.WriteString("| ")
		if i == 0 {
			out.WriteString(cell + pad) // names to the left, values to the right
		} else {
			out.WriteString(pad + cell)
		}
		out.WriteString(" ")
	}
	out.WriteString("|\n")
}
