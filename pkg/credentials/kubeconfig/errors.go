// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"errors"
	"strconv"
	"strings"
)

// Causes of an Error, for errors.Is.
var (
	// ErrInvalid means that the kubeconfig, or the part that a context uses, cannot be
	// used.
	ErrInvalid = errors.New("invalid kubeconfig")

	// ErrNotAllowed means that the Options do not allow what the kubeconfig asks for.
	ErrNotAllowed = errors.New("not allowed")
)

// Error is what is wrong with a kubeconfig. It contains no secret.
type Error struct {
	// Origin is where the kubeconfig is from, such as "Secret clusters/eu".
	Origin string
	// Context is the name of the context, or "" if the error concerns all of them.
	Context string
	// Cluster or User is the name of the entry that the error concerns, or "".
	Cluster, User string
	// Field is the name of the field in the kubeconfig, or "".
	Field string
	// Err is the cause. It is ErrInvalid or ErrNotAllowed, by errors.Is.
	Err error
}

// Error implements error. The text is a single line.
func (e *Error) Error() string {
	text := &strings.Builder{}
	text.WriteString(e.Origin + ": ")
	for _, part := range []struct{ kind, name string }{{"context", e.Context}, {"cluster", e.Cluster}, {"user", e.User}} {
		if part.name != "" {
			text.WriteString(part.kind + " " + strconv.Quote(part.name) + ": ")
		}
	}
	if e.Field != "" {
		text.WriteString(e.Field + ": ")
	}
	text.WriteString(e.Err.Error())
	return text.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// fault is the cause of an Error, with a text of its own.
type fault struct {
	sentinel error
	text     string
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.sentinel }

func invalid(text string) error    { return &fault{ErrInvalid, text} }
func notAllowed(text string) error { return &fault{ErrNotAllowed, text} }
