// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"slices"
)

// row is one value of both contenders, in each round.
type row struct {
	name           string
	format         func(float64) string
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
	format := ratio
	if r.compare != quotient {
		format = r.format
	}
	if r.compare == difference {
		format = func(v float64) string { return signed(r.format, v) }
	}
	values := r.compared()
	middle := median(values)
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
		r.name, r.format(median(slices.Clone(r.bare))), r.format(median(slices.Clone(r.rollcall))),
		format(middle), spread(format, values), limit, verdict,
	}
}

// spread is the least and the most of the values, nothing if there is but one.
func spread(format func(float64) string, values []float64) string {
	if len(values) < 2 {
		return ""
	}
	return format(slices.Min(values)) + " … " + format(slices.Max(values))
}

func signed(format func(float64) string, v float64) string {
	if v < 0 {
		return "−" + format(-v)
	}
	return "+" + format(v)
}

func seconds(v float64) string      { return fmt.Sprintf("%.2f s", v) }
func milliseconds(v float64) string { return fmt.Sprintf("%.2f ms", v*1e3) }
func microseconds(v float64) string { return fmt.Sprintf("%.0f µs", v*1e6) }
func kilobytes(v float64) string    { return fmt.Sprintf("%.1f kB", v/1e3) }
func bytes(v float64) string        { return fmt.Sprintf("%.0f B", v) }
func decimal(v float64) string      { return fmt.Sprintf("%.2f", v) }
func integer(v float64) string      { return fmt.Sprintf("%.0f", math.Round(v)) }
func ratio(v float64) string        { return fmt.Sprintf("%.2f", v) }
