// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// spinInterval is how often the line of a running step is updated on a terminal.
	spinInterval = 100 * time.Millisecond

	// beatInterval is how often a running step prints a line elsewhere.
	beatInterval = 8 * time.Second
)

const (
	green = "32"
	red   = "31"
	faint = "2"
)

// ui prints the progress of steps: on a terminal as a line that is updated in
// place, elsewhere as plain lines. Steps do not overlap.
type ui struct {
	out      io.Writer
	terminal bool
	color    bool
}

func newUI(out io.Writer) *ui {
	terminal := isTerminal(out)
	return &ui{out: out, terminal: terminal, color: terminal && os.Getenv("NO_COLOR") == ""}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// report has the messages of a running step.
type report struct {
	mu    sync.Mutex // guards the fields below
	now   string     // the current activity
	lines []string   // printed below the step after its end
}

// Now sets the current activity, "" for none.
func (r *report) Now(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = fmt.Sprintf(format, args...)
}

// Explain prints a sentence below the step.
func (r *report) Explain(format string, args ...any) { r.show("  ", format, args...) }

// Quote prints the output of a program, or a value, below the step.
func (r *report) Quote(format string, args ...any) { r.show("│ ", format, args...) }

func (r *report) show(prefix, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		r.lines = append(r.lines, prefix+strings.TrimRight(line, "\n"))
	}
}

// Step runs f and prints doing while it runs, then done with a ✓, or doing with a ✗
// and the error.
func (u *ui) Step(ctx context.Context, doing, done string, f func(ctx context.Context, r *report) error) error {
	r := &report{}
	started := time.Now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		u.follow(r, doing, started, stop)
	}()
	err := f(ctx, r)
	close(stop)
	<-stopped

	took := u.paint(faint, fmt.Sprintf("(%.1fs)", time.Since(started).Seconds()))
	switch {
	case err == nil:
		u.Say(" %s %s %s", u.paint(green, "✓"), done, took)
	case ctx.Err() != nil:
		u.Say(" %s %s, interrupted %s", u.paint(red, "✗"), doing, took)
		return err
	default:
		u.Say(" %s %s %s", u.paint(red, "✗"), doing, took)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		u.Say("   %s", u.paint(faint, line))
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			u.Say("   %s", strings.TrimRight(line, "\n"))
		}
	}
	return err
}

// follow prints the progress of a running step until stop is closed.
func (u *ui) follow(r *report, doing string, started time.Time, stop <-chan struct{}) {
	interval := beatInterval
	if u.terminal {
		interval = spinInterval
		defer fmt.Fprint(u.out, "\r\x1b[K")
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	spinner := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	for tick := 0; ; tick++ {
		elapsed := time.Since(started).Round(time.Second)
		r.mu.Lock()
		text := fmt.Sprintf("%s, %v", doing, elapsed)
		if r.now != "" {
			text += ": " + r.now
		}
		r.mu.Unlock()
		switch {
		case u.terminal:
			// Without wrapping, so that a long line can be overwritten.
			fmt.Fprintf(u.out, "\r\x1b[K\x1b[?7l %c %s\x1b[?7h", spinner[tick%len(spinner)], text)
		case tick > 0:
			u.Say(" … %s", text)
		}
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

// Say prints a line.
func (u *ui) Say(format string, args ...any) {
	fmt.Fprintf(u.out, format+"\n", args...)
}

func (u *ui) paint(style, text string) string {
	if !u.color {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
