// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import "slices"

// row is one measured value of Rollcall, beside that of what it is compared
// with.
type row struct {
	name    string
	format  format
	compare comparison
	goal    *goal // nil if there is none
	// other and rollcall have a value for each round. Other may be empty.
	other, rollcall []float64
}

// pair returns a row with one value of each side.
func pair(name string, write format, compare comparison, goal *goal, other, rollcall float64) row {
	return row{name: name, format: write, compare: compare, goal: goal, other: []float64{other}, rollcall: []float64{rollcall}}
}

// single returns a row with one value that is compared with nothing.
func single(name string, write format, goal *goal, value float64) row {
	return row{name: name, format: write, compare: alone, goal: goal, rollcall: []float64{value}}
}

// comparison is what becomes of the two values of a round.
type comparison int

const (
	quotient   comparison = iota // Rollcall's value divided by the other
	difference                   // Rollcall's value minus the other
	alone                        // Rollcall's value; the other is only shown
)

// goal limits what a row compares.
type goal struct {
	sign  string // =, ≤ or ≥
	limit float64
	// always is whether the goal must be met at any size on any machine.
	always bool
}

func exactly(limit float64) *goal { return &goal{sign: "=", limit: limit} }
func atMost(limit float64) *goal  { return &goal{sign: "≤", limit: limit} }
func atLeast(limit float64) *goal { return &goal{sign: "≥", limit: limit} }

// none is the goal that something never happens.
var none = &goal{sign: "≤", always: true}

func (g *goal) met(value float64) bool {
	switch g.sign {
	case "≤":
		return value <= g.limit
	case "≥":
		return value >= g.limit
	}
	return value == g.limit
}

// compared returns the compared value of each round.
func (r *row) compared() []float64 {
	values := slices.Clone(r.rollcall)
	for i := range values {
		switch r.compare {
		case quotient:
			values[i] /= r.other[i]
		case difference:
			values[i] -= r.other[i]
		case alone:
		}
	}
	return values
}

// met reports whether the median over the rounds meets the goal.
func (r *row) met() bool { return r.goal.met(median(r.compared())) }

// cells are those of the table.
func (r *row) cells() []string {
	write := r.format
	switch r.compare {
	case quotient:
		write = decimal
	case difference:
		write = func(v float64) string { return signed(r.format, v) }
	case alone:
	}
	values := r.compared()
	cells := []string{r.name, "", r.format(median(r.rollcall)), "", spread(write, values), "", ""}
	if len(r.other) > 0 {
		cells[1], cells[3] = r.format(median(r.other)), write(median(values))
	}
	if r.goal != nil {
		cells[5], cells[6] = r.goal.sign+" "+write(r.goal.limit), "miss"
		if r.met() {
			cells[6] = "ok"
		}
	}
	return cells
}

// spread writes the least and the greatest of several values.
func spread(write format, values []float64) string {
	if len(values) < 2 {
		return ""
	}
	return write(slices.Min(values)) + " … " + write(slices.Max(values))
}
