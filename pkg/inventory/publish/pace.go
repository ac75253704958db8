// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import "time"

// pace limits the writes of one profile to one in an interval on average. A write
// that is urgent may be one interval early.
type pace struct {
	interval time.Duration
	next     time.Time // of a write that is not urgent
}

// due returns when the next write is allowed.
func (p *pace) due(urgent bool) time.Time {
	if urgent {
		return p.next.Add(-p.interval)
	}
	return p.next
}

// wrote counts a write.
func (p *pace) wrote(now time.Time) {
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(p.interval)
}
