// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"bytes"
	"io"
	"sync"
)

// maxLine is how much of a line is kept until it ends.
const maxLine = 64 << 10

// lines writes whole lines with a prefix, so that those of several programs do not mix. It
// is used by one goroutine; the writer may be shared.
type lines struct {
	to     io.Writer
	mu     *sync.Mutex // of the writer
	prefix string

	rest []byte // of a line that has not ended
}

// Write implements io.Writer.
func (l *lines) Write(data []byte) (int, error) {
	l.rest = append(l.rest, data...)
	end := bytes.LastIndexByte(l.rest, '\n') + 1
	if end == 0 && len(l.rest) > maxLine {
		l.rest = append(l.rest, '\n')
		end = len(l.rest)
	}
	return len(data), l.flush(end)
}

// end writes a last line without a line break.
func (l *lines) end() {
	if len(l.rest) > 0 {
		l.rest = append(l.rest, '\n')
		_ = l.flush(len(l.rest))
	}
}

// flush writes that many bytes, which are whole lines.
func (l *lines) flush(end int) error {
	if end == 0 {
		return nil
	}
	var out bytes.Buffer
	for line := range bytes.Lines(l.rest[:end]) {
		out.WriteString(l.prefix)
		out.Write(line)
	}
	l.rest = bytes.Clone(l.rest[end:])
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.to.Write(out.Bytes())
	return err
}
