// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"fmt"
)

// CheckOne runs the check of that name alone.
func CheckOne(ctx context.Context, command Command, name string) error {
	for _, check := range checks() {
		if check.name == name {
			return check.run(ctx, newSuite(command))
		}
	}
	return fmt.Errorf("there is no check %q", name)
}
