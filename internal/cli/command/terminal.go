// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"os"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Terminal has the streams of the program. Each stream that is a terminal gets colours,
// unless the environment has NO_COLOR or TERM=dumb; a pipe or file gets plain text.
type Terminal struct {
	genericiooptions.IOStreams

	outColor, errColor bool
	errTerminal        bool
	outTerminal        bool
}

// NewTerminal returns the Terminal of the streams.
func NewTerminal(streams genericiooptions.IOStreams) *Terminal {
	color := os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	t := &Terminal{IOStreams: streams, outTerminal: isTerminal(streams.Out), errTerminal: isTerminal(streams.ErrOut)}
	t.outColor, t.errColor = t.outTerminal && color, t.errTerminal && color
	return t
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// OutIsTerminal reports whether the standard output is a terminal.
func (t *Terminal) OutIsTerminal() bool { return t.outTerminal }

// Color is a colour of text.
type Color string

// The colours, as ANSI codes.
const (
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Faint  Color = "2"
)

// Paint returns the text in the colour for the standard output, or as it is.
func (t *Terminal) Paint(color Color, text string) string { return paint(t.outColor, color, text) }

// PaintErr returns the text in the colour for the standard error, or as it is.
func (t *Terminal) PaintErr(color Color, text string) string { return paint(t.errColor, color, text) }

func paint(on bool, color Color, text string) string {
	if !on || text == "" {
		return text
	}
	return "\x1b[" + string(color) + "m" + text + "\x1b[0m"
}

// Painted is the text of a table's cell in a colour.
type Painted struct {
	Color Color
	Text  string
}

// Cell returns the text as a table's cell in the colour for the standard output, or as it is.
func (t *Terminal) Cell(color Color, text string) any {
	if !t.outColor {
		return text
	}
	return Painted{Color: color, Text: text}
}

// Mark returns ✓ or ✗ for the standard output.
func (t *Terminal) Mark(ok bool) string {
	if ok {
		return t.Paint(Green, "✓")
	}
	return t.Paint(Red, "✗")
}
