// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package measure is what the benchmarks have in common: what the process
// takes, the middle of values that vary, and a table of it all.
package measure
