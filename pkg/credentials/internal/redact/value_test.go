// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"slices"
	"testing"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/redact"
)

func TestArgs(t *testing.T) {
	for name, tc := range map[string]struct{ args, want []string }{
		"the value after a flag":    {[]string{"--password", "letmein", "--region", "eu"}, []string{"--password", redact.Mark, "--region", "eu"}},
		"the value in a flag":       {[]string{"--client-secret=letmein", "-token=a b"}, []string{"--client-secret=" + redact.Mark, "-token=" + redact.Mark}},
		"a flag after a flag":       {[]string{"--token", "--verbose"}, []string{"--token", "--verbose"}},
		"an argument by itself":     {[]string{"ghp_9fK2mX7qLw3RtY8sVb5N", "get"}, []string{"ghp_" + redact.Mark, "get"}},
		"a flag of another meaning": {[]string{"--secret-name=db", "--token-lifetime", "1h"}, []string{"--secret-name=db", "--token-lifetime", "1h"}},
		"none":                      {nil, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redact.Args(tc.args); !slices.Equal(got, tc.want) {
				t.Errorf("%q, not %q", got, tc.want)
			}
		})
	}
}
