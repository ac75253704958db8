// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/test/internal/measure"
)

func TestEveryExperimentHasAValueForEachOfItsRows(t *testing.T) {
	for _, e := range experiments() {
		t.Run(e.name, func(t *testing.T) {
			g := NewWithT(t)
			e.measure(t, smallest)
			for _, r := range e.rows {
				for _, values := range [][]float64{r.bare, r.rollcall} {
					g.Expect(values).To(HaveLen(1), r.name)
					g.Expect(math.IsNaN(values[0])).To(BeFalse(), r.name)
				}
			}
		})
	}
}

func TestARowIsJudgedByTheMedianOfItsRounds(t *testing.T) {
	for _, tc := range []struct {
		name string
		row  row
		want []string
	}{
		{
			name: "a quotient within the limit",
			row:  row{format: measure.Integer, goal: atMost(1.1), bare: []float64{100, 200, 100}, rollcall: []float64{105, 200, 190}},
			want: []string{"", "100", "190", "1.05", "1.00 … 1.90", "≤ 1.10", "ok"},
		},
		{
			name: "a quotient below what it should be",
			row:  row{format: measure.Integer, goal: atLeast(0.9), bare: []float64{100}, rollcall: []float64{80}},
			want: []string{"", "100", "80", "0.80", "", "≥ 0.90", "miss"},
		},
		{
			name: "a difference that is negative",
			row:  row{format: measure.Decimal, compare: difference, goal: atMost(3), bare: []float64{5}, rollcall: []float64{4}},
			want: []string{"", "5.00", "4.00", "−1.00", "", "≤ +3.00", "ok"},
		},
		{
			name: "a value by itself, whatever bare controller-runtime's is",
			row:  row{format: measure.Integer, compare: alone, goal: atMost(0), bare: []float64{7}, rollcall: []float64{1}},
			want: []string{"", "7", "1", "1", "", "≤ 0", "miss"},
		},
		{
			name: "a row without a goal",
			row:  row{format: measure.Integer, bare: []float64{1}, rollcall: []float64{2}},
			want: []string{"", "1", "2", "2.00", "", "", ""},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(tc.row.cells()).To(Equal(tc.want))
		})
	}
}
