// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestStepsInAPipe(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(ctx context.Context, r *report) error
		want string
	}{
		{
			name: "a short step",
			do:   func(context.Context, *report) error { return nil },
			want: " ✓ cooked (0.0s)\n",
		},
		{
			name: "a step with output",
			do: func(_ context.Context, r *report) error {
				r.Explain("With salt.")
				r.Quote("%s", "one\ntwo")
				return nil
			},
			want: " ✓ cooked (0.0s)\n     With salt.\n   │ one\n   │ two\n",
		},
		{
			name: "a long step prints its activity",
			do: func(_ context.Context, r *report) error {
				r.Now("waiting for water")
				time.Sleep(10 * time.Second)
				r.Now("")
				time.Sleep(10 * time.Second)
				return nil
			},
			want: " … cooking, 8s: waiting for water\n … cooking, 16s\n ✓ cooked (20.0s)\n",
		},
		{
			name: "a failed step",
			do: func(_ context.Context, r *report) error {
				r.Explain("With salt.")
				return errors.New("no water\nLast lines:\n│ none left")
			},
			want: " ✗ cooking (0.0s)\n     With salt.\n   no water\n   Last lines:\n   │ none left\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var out bytes.Buffer
				_ = newUI(&out).Step(t.Context(), "cooking", "cooked", tc.do)
				g.Expect(out.String()).To(Equal(tc.want))
			})
		})
	}
}

func TestInterruptedStep(t *testing.T) {
	g := NewWithT(t)
	ctx, interrupt := context.WithCancel(t.Context())
	var out bytes.Buffer
	err := newUI(&out).Step(ctx, "cooking", "cooked", func(ctx context.Context, _ *report) error {
		interrupt()
		return ctx.Err()
	})
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(out.String()).To(Equal(" ✗ cooking, interrupted (0.0s)\n"))
}

func TestLongStepPrintsOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		out := &timedWriter{last: time.Now()}
		_ = newUI(out).Step(t.Context(), "cooking", "cooked", func(context.Context, *report) error {
			time.Sleep(time.Hour)
			return nil
		})
		g.Expect(out.longest).To(BeNumerically("<", 10*time.Second))
	})
}

func TestStepsOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		u := &ui{out: &out, terminal: true, color: true}
		_ = u.Step(t.Context(), "cooking", "cooked", func(context.Context, *report) error {
			time.Sleep(time.Second)
			return nil
		})
		frames := strings.Split(out.String(), "\r\x1b[K")
		g.Expect(len(frames)).To(BeNumerically(">", 10), "the line of the running step is updated")
		for _, frame := range frames[1 : len(frames)-1] {
			g.Expect(frame).To(MatchRegexp(`^\x1b\[\?7l . cooking, [01]s\x1b\[\?7h$`), "without wrapping")
		}
		g.Expect(frames[len(frames)-1]).To(Equal(" \x1b[32m✓\x1b[0m cooked \x1b[2m(1.0s)\x1b[0m\n"))
	})
}

// timedWriter measures the longest time between two writes.
type timedWriter struct {
	last    time.Time
	longest time.Duration
}

func (w *timedWriter) Write(p []byte) (int, error) {
	now := time.Now()
	w.longest = max(w.longest, now.Sub(w.last))
	w.last = now
	return len(p), nil
}
