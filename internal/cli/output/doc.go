// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package output prints results as a table, JSON, YAML or names, with the printers of
// kubectl.
package output
