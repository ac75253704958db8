// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp

import "time"

// SetRetryDelay sets the delay before the first retry.
func (p *Plugin) SetRetryDelay(d time.Duration) { p.retryDelay = d }
