// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"fmt"
	"slices"
)

// CheckOne runs the named check, after the checks in before, whose results are
// ignored.
func CheckOne(ctx context.Context, command Command, name string, before ...string) error {
	s := newSuite(command)
	for _, check := range checks() {
		switch {
		case check.name == name:
			return check.run(ctx, s)
		case slices.Contains(before, check.name):
			_ = check.run(ctx, s)
		}
	}
	return fmt.Errorf("there is no check %q", name)
}
