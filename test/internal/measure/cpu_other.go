// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package measure

import "time"

// CPUTime is not known here.
func CPUTime() time.Duration { return 0 }
