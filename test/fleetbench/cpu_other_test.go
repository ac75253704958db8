// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package fleetbench

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
