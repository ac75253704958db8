// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"sync"
	"time"
)

// Progress is one line on a terminal that shows how many of many things are done, and
// nothing in a pipe. Its methods may be called concurrently.
type Progress struct {
	terminal *Terminal
	label    string
	total    int

	mu      sync.Mutex // guards what follows
	done    int
	started time.Time
	printed time.Time
}

// The line appears only for what takes long, and changes no faster than one can read.
const (
	progressDelay    = 500 * time.Millisecond
	progressInterval = 100 * time.Millisecond
)

// Progress starts a line such as "Checking 3/200". Call Done for each, and End.
func (t *Terminal) Progress(label string, total int) *Progress {
	return &Progress{terminal: t, label: label, total: total, started: time.Now()}
}

// Done counts one more.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	now := time.Now()
	if !p.terminal.errTerminal || now.Sub(p.started) < progressDelay || now.Sub(p.printed) < progressInterval {
		return
	}
	p.printed = now
	_, _ = fmt.Fprintf(p.terminal.ErrOut, "\r\x1b[K%s %d/%d", p.label, p.done, p.total)
}

// End removes the line.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.printed.IsZero() {
		_, _ = fmt.Fprint(p.terminal.ErrOut, "\r\x1b[K")
	}
}
