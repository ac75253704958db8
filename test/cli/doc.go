// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli has scripts that use mc-credential as people do, with a hub and three members
// on real control planes, one of which does not respond. See testdata/script, and
// script_test.go for the commands and variables that they have.
package cli
