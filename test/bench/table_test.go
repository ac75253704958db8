// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var out = flag.String("out", "", "file that the tables are written to, too")

// printed is what publish has printed so far.
var printed strings.Builder

// publish prints a table below its title, and writes it to the file of -out.
func publish(b *testing.B, title, table string) {
	b.Helper()
	fmt.Printf("\n%s\n\n%s\n", title, table)
	fmt.Fprintf(&printed, "%s\n\n%s", title, table)
	if *out == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(*out, []byte(printed.String()), 0o644); err != nil {
		b.Fatal(err)
	}
}

// table shows rows. The columns of the values have the names of both sides.
// Columns without any content are left out.
func table(other, rollcall string, rows []row) string {
	lines := [][]string{{"", other, rollcall, "compared", "over the rounds", "goal", ""}}
	for i := range rows {
		lines = append(lines, rows[i].cells())
	}
	for column := len(lines[0]) - 1; column > 0; column-- {
		if !slices.ContainsFunc(lines[1:], func(cells []string) bool { return cells[column] != "" }) {
			for i := range lines {
				lines[i] = slices.Delete(lines[i], column, column+1)
			}
		}
	}
	return markdown(lines)
}

// markdown aligns lines as a Markdown table: the first column to the left, all
// others to the right. The first line is the header.
func markdown(lines [][]string) string {
	rule := make([]string, len(lines[0]))
	for i := range rule {
		width := 3
		for _, cells := range lines {
			width = max(width, utf8.RuneCountInString(cells[i]))
		}
		rule[i] = strings.Repeat("-", width)
	}
	var text strings.Builder
	for _, cells := range slices.Insert(slices.Clone(lines), 1, rule) {
		for i, cell := range cells {
			pad := strings.Repeat(" ", len(rule[i])-utf8.RuneCountInString(cell))
			if i == 0 {
				text.WriteString("| " + cell + pad + " ")
			} else {
				text.WriteString("| " + pad + cell + " ")
			}
		}
		text.WriteString("|\n")
	}
	return text.String()
}
