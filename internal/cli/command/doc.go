// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package command has what the commands of mc-credential share: the streams and what a
// terminal shows, the flags of the hub, and exit codes.
package command
