// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"

	"github.com/rollcall-dev/rollcall/test/internal/measure"
)

// row is one value of both contenders, in each round.
type row struct {
	name           string
	format         measure.Format
	compare        comparison
	goal           *goal
	bare, rollcall []float64
}

// comparison is what rollcall's value is set against.
type comparison int

const (
	// quotient: rollcall's value divided by that of bare controller-runtime.
	quotient comparison = iota
	// difference: rollcall's value less that of bare controller-runtime.
	difference
	// alone: rollcall's value as it is; bare's is shown for comparison.
	alone
)

// goal is a limit of what a row compares.
type goal struct {
	limit float64
	least bool // otherwise the most there may be
}

func atMost(limit float64) *goal  { return &goal{limit: limit} }
func atLeast(limit float64) *goal { return &goal{limit: limit, least: true} }

func (g *goal) met(value float64) bool {
	if g.least {
		return value >= g.limit
	}
	return value <= g.limit
}

// compared returns what is compared, in each round.
func (r *row) compared() []float64 {
	values := make([]float64, len(r.rollcall))
	for i := range values {
		switch r.compare {
		case quotient:
			values[i] = r.rollcall[i] / r.bare[i]
		case difference:
			values[i] = r.rollcall[i] - r.bare[i]
		case alone:
			values[i] = r.rollcall[i]
		}
	}
	return values
}

// cells are those of the table.
func (r *row) cells() []string {
	format := measure.Decimal
	if r.compare != quotient {
		format = r.format
	}
	if r.compare == difference {
		format = func(v float64) string { return measure.Signed(r.format, v) }
	}
	values := r.compared()
	middle := measure.Median(values)
	verdict := ""
	limit := ""
	if r.goal != nil {
		limit = "≤ " + format(r.goal.limit)
		if r.goal.least {
			limit = "≥ " + format(r.goal.limit)
		}
		verdict = "miss"
		if r.goal.met(middle) {
			verdict = "ok"
		}
	}
	return []string{
		r.name, r.format(measure.Median(slices.Clone(r.bare))), r.format(measure.Median(slices.Clone(r.rollcall))),
		format(middle), spread(format, values), limit, verdict,
	}
}

// spread is the least and the most of the values, nothing if there is but one.
func spread(format measure.Format, values []float64) string {
	if len(values) < 2 {
		return ""
	}
	return format(slices.Min(values)) + " … " + format(slices.Max(values))
}

// header is the first line of the table.
var header = []string{"", "bare", "rollcall", "compared", "over the rounds", "goal", ""}

func table(rows []row) string {
	lines := make([][]string, len(rows))
	for i := range rows {
		lines[i] = rows[i].cells()
	}
	return measure.Table(header, lines)
}
