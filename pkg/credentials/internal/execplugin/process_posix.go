// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package execplugin

import "syscall"

// dieWithThread does nothing: on this platform, processes outlive their parent.
func dieWithThread(*syscall.SysProcAttr) {}
