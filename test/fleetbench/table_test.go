// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleetbench

import "github.com/rollcall-dev/rollcall/test/internal/measure"

// row is one value, of the fleet and of what it is compared with.
type row struct {
	name   string
	format measure.Format
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
		format = measure.Decimal
	case difference:
		format = func(v float64) string { return measure.Signed(r.format, v) }
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

func table(rows []row) string {
	lines := make([][]string, len(rows))
	for i := range rows {
		lines[i] = rows[i].cells()
	}
	return measure.Table([]string{"", "other", "fleet", "compared", "goal", ""}, lines)
}
