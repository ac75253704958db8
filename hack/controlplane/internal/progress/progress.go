// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package progress tells somebody who waits what is going on.
package progress

import (
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// terminalInterval is how often the line on a terminal is updated.
	terminalInterval = time.Second
	// heartbeatInterval is how often a step says elsewhere that it still runs.
	heartbeatInterval = 30 * time.Second
)

// A Reporter writes progress: on a terminal as one line per step that is
// updated in place, elsewhere as a line at a step's start and its end, and
// every 30 s between them. Steps do not overlap.
type Reporter struct {
	out      io.Writer
	terminal bool
}

// New returns a Reporter that writes to out, or nothing at all if quiet.
func New(out io.Writer, quiet bool) *Reporter {
	if quiet {
		return &Reporter{out: io.Discard}
	}
	return &Reporter{out: out, terminal: isTerminal(out)}
}

// Say prints one line.
func (r *Reporter) Say(format string, args ...any) {
	fmt.Fprintf(r.out, format+"\n", args...)
}

// Step runs f, which does what the words say ("building etcd"), and reports on
// it with the note ("about 30 s") as long as it runs. It returns f's error,
// which it does not print.
func (r *Reporter) Step(words, note string, f func() error) error {
	if note != "" {
		note = " (" + note + ")"
	}
	start := time.Now()
	interval := heartbeatInterval
	if r.terminal {
		interval = terminalInterval
		fmt.Fprintf(r.out, "%s%s", words, note)
	} else {
		fmt.Fprintf(r.out, "%s%s\n", words, note)
	}

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			elapsed := time.Since(start).Round(time.Second)
			if r.terminal {
				fmt.Fprintf(r.out, "\r\x1b[K%s%s, %v", words, note, elapsed)
			} else {
				fmt.Fprintf(r.out, "still %s, %v\n", words, elapsed)
			}
		}
	}()
	err := f()
	close(stop)
	<-stopped

	outcome := "done"
	if err != nil {
		outcome = "gave up"
	}
	if r.terminal {
		fmt.Fprint(r.out, "\r\x1b[K")
	}
	fmt.Fprintf(r.out, "%s: %s after %v\n", words, outcome, time.Since(start).Round(time.Second/10))
	return err
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}
