// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import "syscall"

// dieWithThread has the kernel kill the process when the thread that starts it
// ends, as all threads do when this process is killed.
func dieWithThread(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
