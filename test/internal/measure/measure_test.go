// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestPercentilesAndMedians(t *testing.T) {
	g := NewWithT(t)
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	g.Expect(Percentile(hundred, 50)).To(Equal(time.Duration(50)))
	g.Expect(Percentile(hundred, 99)).To(Equal(time.Duration(99)))
	g.Expect(Percentile(hundred[:1], 99)).To(Equal(time.Duration(1)))
	g.Expect(Median([]float64{3, 1, 2})).To(Equal(2.0))
	g.Expect(Median([]float64{4, 1, 2, 3})).To(Equal(2.5))
}

func TestTheTableIsAlignedAndValidMarkdown(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Table([]string{"", "µ"}, [][]string{{"a", "1"}, {"long", "12345"}})).To(Equal(`|      |     µ |
| ---- | ----- |
| a    |     1 |
| long | 12345 |
`))
}

func TestDifferencesHaveASign(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Signed(Decimal, -1)).To(Equal("−1.00"))
	g.Expect(Signed(Decimal, 1)).To(Equal("+1.00"))
}
