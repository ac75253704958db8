// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package progress prints the progress of long steps.
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
	// heartbeatInterval is how often a running step prints a line elsewhere.
	heartbeatInterval = 30 * time.Second
)

// A Reporter prints progress: on a terminal as one line per step that is updated
// in place, elsewhere as a line at the start, at the end, and every 30 s. Steps do
// not overlap.
type Reporter struct {
	out      io.Writer
	terminal bool
}

// New returns a Reporter that writes to out, or to nothing if quiet.
func New(out io.Writer, quiet bool) *Reporter {
	if quiet {
		return &Reporter{out: io.Discard}
	}
	return &Reporter{out: out, terminal: isTerminal(out)}
}

// Step runs f, described by name ("building etcd"), and prints its progress with
// the note ("about 30 s"). It returns f's error without printing it.
func (r *Reporter) Step(name, note string, f func() error) error {
	if note != "" {
		note = " (" + note + ")"
	}
	start := time.Now()
	interval := heartbeatInterval
	if r.terminal {
		interval = terminalInterval
		fmt.Fprintf(r.out, "%s%s", name, note)
	} else {
		fmt.Fprintf(r.out, "%s%s\n", name, note)
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
				fmt.Fprintf(r.out, "\r\x1b[K%s%s, %v", name, note, elapsed)
			} else {
				fmt.Fprintf(r.out, "still %s, %v\n", name, elapsed)
			}
		}
	}()
	err := f()
	close(stop)
	<-stopped

	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	if r.terminal {
		fmt.Fprint(r.out, "\r\x1b[K")
	}
	fmt.Fprintf(r.out, "%s: %s after %v\n", name, outcome, time.Since(start).Round(time.Second/10))
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
