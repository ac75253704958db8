// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRecord(t *testing.T) {
	g := NewWithT(t)
	r := newRecord()
	_, changed := r.From(0)
	for _, part := range []string{"one\ntw", "o", "\nthr"} {
		_, _ = io.WriteString(r, part)
	}
	g.Expect(changed).To(BeClosed())

	lines, changed := r.From(0)
	g.Expect(lines).To(Equal([]string{"one", "two"}))
	g.Expect(changed).NotTo(BeClosed())
	lines, _ = r.From(1)
	g.Expect(lines).To(Equal([]string{"two"}))
	g.Expect(r.Len()).To(Equal(2))
	g.Expect(r.Matching(func(line string) bool { return line == "two" })).To(Equal([]string{"two"}))

	g.Expect(r.Contains("w")).To(BeTrue())
	g.Expect(r.Contains("thr")).To(BeTrue(), "also in an incomplete line")
	g.Expect(r.Contains("four")).To(BeFalse())
}
