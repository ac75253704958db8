// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestStatistics(t *testing.T) {
	g := NewWithT(t)
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	g.Expect(percentile(hundred, 50)).To(Equal(time.Duration(50)))
	g.Expect(percentile(hundred, 99)).To(Equal(time.Duration(99)))
	g.Expect(percentile(hundred[:1], 99)).To(Equal(time.Duration(100)))
	g.Expect(median([]float64{3, 1, 2})).To(Equal(2.0))
	g.Expect(median([]float64{4, 1, 2, 3})).To(Equal(2.5))
}

func TestMarkdown(t *testing.T) {
	NewWithT(t).Expect(markdown([][]string{{"", "µ"}, {"a", "1"}, {"long", "12345"}})).To(Equal(`|      |     µ |
| ---- | ----- |
| a    |     1 |
| long | 12345 |
`))
}

func TestTableWithoutEmptyColumns(t *testing.T) {
	rows := []row{{name: "a", format: integer, compare: alone, rollcall: []float64{7}}}
	NewWithT(t).Expect(table("other", "fleet", rows)).To(Equal(`|     | fleet |
| --- | ----- |
| a   |     7 |
`))
}

func TestRowCells(t *testing.T) {
	for _, tc := range []struct {
		name string
		row  row
		want []string
	}{
		{
			name: "the median decides whether a quotient is within the limit",
			row:  row{format: integer, goal: atMost(1.1), other: []float64{100, 200, 100}, rollcall: []float64{105, 200, 190}},
			want: []string{"", "100", "190", "1.05", "1.00 … 1.90", "≤ 1.10", "ok"},
		},
		{
			name: "a quotient below the limit",
			row:  row{format: integer, goal: atLeast(0.9), other: []float64{100}, rollcall: []float64{80}},
			want: []string{"", "100", "80", "0.80", "", "≥ 0.90", "miss"},
		},
		{
			name: "a negative difference",
			row:  row{format: decimal, compare: difference, goal: atMost(3), other: []float64{5}, rollcall: []float64{4}},
			want: []string{"", "5.00", "4.00", "−1.00", "", "≤ +3.00", "ok"},
		},
		{
			name: "a positive difference",
			row:  row{format: decimal, compare: difference, other: []float64{4}, rollcall: []float64{5}},
			want: []string{"", "4.00", "5.00", "+1.00", "", "", ""},
		},
		{
			name: "a value alone, whatever the other is",
			row:  row{format: integer, compare: alone, goal: none, other: []float64{7}, rollcall: []float64{1}},
			want: []string{"", "7", "1", "1", "", "≤ 0", "miss"},
		},
		{
			name: "no other value, and an exact goal",
			row:  row{format: integer, compare: alone, goal: exactly(2), rollcall: []float64{2}},
			want: []string{"", "", "2", "", "", "= 2", "ok"},
		},
		{
			name: "no goal",
			row:  row{format: integer, other: []float64{1}, rollcall: []float64{2}},
			want: []string{"", "1", "2", "2.00", "", "", ""},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(tc.row.cells()).To(Equal(tc.want))
		})
	}
}
