// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package exampletest has what the tests of example programs share, and lets examples
// use functions that need a testing.TB, such as those of mctest:
//
//	func Example() {
//		t, end := exampletest.New() // in a test: its own t
//		defer end()
//		…
//	}
package exampletest

import (
	"fmt"
	"slices"
	"testing"
)

// tb is a testing.TB for examples. It panics on a failure.
type tb struct {
	testing.TB // nil
	cleanups   []func()
}

// New returns a testing.TB, and a function that calls its cleanups.
func New() (t testing.TB, end func()) {
	e := &tb{}
	return e, func() {
		for _, f := range slices.Backward(e.cleanups) {
			f()
		}
	}
}

func (e *tb) Helper()                           {}
func (e *tb) Cleanup(f func())                  { e.cleanups = append(e.cleanups, f) }
func (e *tb) Error(args ...any)                 { panic(fmt.Sprint(args...)) }
func (e *tb) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (e *tb) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (e *tb) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
