// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"strings"
	"testing"
)

func TestDocsNameEveryCause(t *testing.T) {
	page, err := os.ReadFile("../../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	for cause, remedy := range remedies {
		if !strings.Contains(string(page), "`"+string(cause)+"`") || remedy == "" {
			t.Errorf("docs/check.md does not explain %s", cause)
		}
	}
	for _, name := range stepNames {
		if !strings.Contains(string(page), "| "+string(name)+" |") {
			t.Errorf("docs/check.md does not explain the step %s", name)
		}
	}
}
