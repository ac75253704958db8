// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
)

// colorWriter is below the printer of tables, which escapes colours: cells have marks of
// equal width instead, in all rows of the column, so that the columns stay aligned.
type colorWriter struct {
	next    io.Writer
	painted bool // within a colour
}

// The marks are characters for private use, which cells cannot have: they are escaped.
const (
	begin = '\uE000' // and one for each colour
	end   = '\uE00F'
)

var colors = []command.Color{"", command.Red, command.Green, command.Yellow, command.Faint}

// prepare returns the table without control characters, and with marks for colours.
func (*colorWriter) prepare(table *metav1.Table) *metav1.Table {
	prepared := *table
	prepared.ColumnDefinitions = append([]metav1.TableColumnDefinition(nil), table.ColumnDefinitions...)
	prepared.Rows = make([]metav1.TableRow, len(table.Rows))
	colored := make([]bool, len(table.ColumnDefinitions))
	for _, row := range table.Rows {
		for i, cell := range row.Cells {
			if _, ok := cell.(command.Painted); ok && i < len(colored) {
				colored[i] = true
			}
		}
	}
	for i := range prepared.ColumnDefinitions {
		name := &prepared.ColumnDefinitions[i].Name
		*name = command.OneLine(*name)
		if colored[i] {
			*name = mark("", *name)
		}
	}
	for r, row := range table.Rows {
		cells := make([]any, len(row.Cells))
		for i, cell := range row.Cells {
			switch c := cell.(type) {
			case command.Painted:
				cell = mark(c.Color, command.OneLine(c.Text))
			case string:
				cell = command.Clean(c) // the printer cuts at a line break
				if i < len(colored) && colored[i] {
					cell = mark("", command.OneLine(c))
				}
			}
			cells[i] = cell
		}
		row.Cells = cells
		prepared.Rows[r] = row
	}
	return &prepared
}

func mark(color command.Color, text string) string {
	for i, c := range colors {
		if c == color {
			return string(rune(begin+i)) + text + string(rune(end))
		}
	}
	return text
}

// Write replaces the marks. The writer above it does not split characters.
func (w *colorWriter) Write(data []byte) (int, error) {
	text := string(data)
	if strings.ContainsRune(text, end) || strings.ContainsFunc(text, func(r rune) bool { return r >= begin && r < end }) {
		var b strings.Builder
		for _, r := range text {
			switch {
			case r == begin:
				w.painted = false
			case r > begin && r < begin+rune(len(colors)):
				w.painted = true
				b.WriteString("\x1b[" + string(colors[r-begin]) + "m")
			case r == end && w.painted:
				b.WriteString("\x1b[0m")
			case r != end:
				b.WriteRune(r)
			}
		}
		text = b.String()
	}
	if _, err := io.WriteString(w.next, text); err != nil {
		return 0, err
	}
	return len(data), nil
}
