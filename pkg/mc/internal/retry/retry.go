// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package retry has the backoff of the runtime for failed operations.
package retry

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Backoff returns delays that double from the first to the limit, with 20 % jitter.
func Backoff(first, limit time.Duration) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Jitter: 0.2, Steps: 32, Cap: limit}
}
