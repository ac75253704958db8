// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleetbench

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// row is one value, of the fleet and of what it is compared with.
type row struct {
	name   string
	format func(float64) string
	// other is what the fleet's value is compared with, if compare says so.
	other, fleet float64
	compare      comparison
	limited      bool    // whether there is a goal
	limit        float64 // the most that what is compared may be
	exact        bool    // the goal holds for any size on any machine
}

type comparison int

const (
	alone comparison = iota
	quotient
	difference
)

func (r *row) compared() float64 {
	switch r.compare {
	case quotient:
		return r.fleet / r.other
	case difference:
		return r.fleet - r.other
	}
	return r.fleet
}

func (r *row) met() bool { return r.compared() <= r.limit }

func (r *row) cells() []string {
	cells := []string{r.name, "", r.format(r.fleet), "", "", ""}
	format := r.format
	switch r.compare {
	case quotient:
		format = decimal
	case difference:
		format = func(v float64) string {
			if v < 0 {
				return "−" + r.format(-v)
			}
			return "+" + r.format(v)
		}
	}
	if r.compare != alone {
		cells[1], cells[3] = r.format(r.other), format(r.compared())
	}
	if r.limited {
		cells[4], cells[5] = "≤ "+format(r.limit), "miss"
		if r.met() {
			cells[5] = "ok"
		}
	}
	return cells
}

// table sets rows in columns, as Markdown too shows them.
func table(rows []row) string {
	lines := [][]string{{"", "other", "fleet", "compared", "goal", ""}, make([]string, 6)}
	for i := range rows {
		lines = append(lines, rows[i].cells())
	}
	var out strings.Builder
	for n, cells := range lines {
		for i, cell := range cells {
			width := 3
			for _, other := range lines {
				width = max(width, utf8.RuneCountInString(other[i]))
			}
			pad := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
			switch {
			case n == 1:
				cell, pad = strings.Repeat("-", width), ""
			case i > 0:
				cell, pad = pad+cell, ""
			}
			out.WriteString("| " + cell + pad + " ")
		}
		out.WriteString("|\n")
	}
	return out.String()
}

func seconds(v float64) string   { return fmt.Sprintf("%.2f s", v) }
func kilobytes(v float64) string { return fmt.Sprintf("%.1f kB", v/1e3) }
func megabytes(v float64) string { return fmt.Sprintf("%.1f MB", v/1e6) }
func decimal(v float64) string   { return fmt.Sprintf("%.2f", v) }
func integer(v float64) string   { return fmt.Sprintf("%.0f", v) }
func percent(v float64) string   { return fmt.Sprintf("%.1f %%", v*100) }
func nanos(v float64) string     { return fmt.Sprintf("%.1f ns", v) }
