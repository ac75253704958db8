// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLines(t *testing.T) {
	tests := []struct {
		name   string
		writes []string
		want   string
	}{
		{"lines in one write", []string{"a\nb\n"}, "x | a\nx | b\n"},
		{"a line in several writes", []string{"a", "b", "c\nd\n"}, "x | abc\nx | d\n"},
		{"an empty line", []string{"\n"}, "x | \n"},
		{"a last line that does not end", []string{"a\nb"}, "x | a\nx | b\n"},
		{"nothing", nil, ""},
		{"a line that is too long to keep", []string{strings.Repeat("a", maxLine+1), "b"}, "x | " + strings.Repeat("a", maxLine+1) + "\nx | b\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var out bytes.Buffer
			l := &lines{to: &out, mu: &sync.Mutex{}, prefix: "x | "}
			for _, write := range test.writes {
				g.Expect(l.Write([]byte(write))).To(Equal(len(write)))
			}
			l.end()
			g.Expect(out.String()).To(Equal(test.want))
		})
	}
}

func TestLinesOfProgramsDoNotMix(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			l := &lines{to: &out, mu: &mu, prefix: fmt.Sprintf("%d | ", i)}
			for range 200 {
				_, _ = l.Write([]byte("first half, "))
				_, _ = l.Write([]byte("second half\n"))
			}
			l.end()
		})
	}
	group.Wait()
	for line := range strings.Lines(out.String()) {
		g.Expect(line).To(MatchRegexp(`^\d \| first half, second half\n$`))
	}
}
