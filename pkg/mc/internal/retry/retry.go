// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package retry has the backoff of the runtime for failed operations.
package retry

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Backoff returns delays that double from 1 s to 1 min, with 20 % jitter.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: time.Minute}
}
