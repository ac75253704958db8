// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
)

// Exit codes. They are part of the interface of the program.
const (
	ExitOK     = 0
	ExitFailed = 1 // at least one cluster or step failed
	ExitUsage  = 2 // wrong flags or arguments; nothing was done
)

// exitError is an error that decides the exit code.
type exitError struct {
	code int
	err  error // nil if everything was printed already
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// Exit returns an error with which the program ends with the code. It prints the error
// unless that is nil.
func Exit(code int, err error) error { return &exitError{code: code, err: err} }

// Usagef returns an error of the user's flags or arguments.
func Usagef(format string, args ...any) error {
	return Exit(ExitUsage, fmt.Errorf(format, args...))
}

// ExitCode returns the exit code for the error of a command, and the text to print, or "".
func ExitCode(err error) (code int, text string) {
	if err == nil {
		return ExitOK, ""
	}
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		if exit.err == nil {
			return exit.code, ""
		}
		return exit.code, err.Error()
	}
	return ExitFailed, err.Error()
}
