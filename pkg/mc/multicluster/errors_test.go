// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"errors"
	"fmt"
	"testing"
)

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		name     string
		err      error
		notReady bool
		text     string
	}{
		{
			name: "an unknown cluster is named and is not found",
			err:  NotFoundError("eu-1"),
			text: `cluster "eu-1": cluster not found`,
		},
		{
			name:     "a known cluster gives the reason and is both not ready and not found",
			err:      NotReadyError("eu-1", "Connecting"),
			notReady: true,
			text:     `cluster "eu-1": cluster not ready: Connecting`,
		},
		{
			name:     "a known cluster without a reason leaves no trailing colon",
			err:      NotReadyError("eu-1", ""),
			notReady: true,
			text:     `cluster "eu-1": cluster not ready`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wrapped := fmt.Errorf("reconcile: %w", tc.err)
			if !errors.Is(wrapped, ErrClusterNotFound) {
				t.Error("is not ErrClusterNotFound")
			}
			if got := errors.Is(wrapped, ErrClusterNotReady); got != tc.notReady {
				t.Errorf("is ErrClusterNotReady: got %v, want %v", got, tc.notReady)
			}
			if got := tc.err.Error(); got != tc.text {
				t.Errorf("got %q, want %q", got, tc.text)
			}
		})
	}
}
