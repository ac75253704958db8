// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package listener

// hold cannot keep a port without listening on it on this platform. Another
// socket may take it, which [Listener.Open] then reports.
func hold(string) (release func()) { return func() {} }
