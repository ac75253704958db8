// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package execplugin

import (
	"os"
	"os/exec"
)

// pin does nothing: open files cannot be executed on this platform.
func pin(*exec.Cmd, *os.File) {}
