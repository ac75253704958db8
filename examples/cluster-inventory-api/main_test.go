// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/internal/exampletest"
)

func TestMain(m *testing.M) {
	if !exampletest.Main(main) {
		goleak.VerifyTestMain(m)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		text string
	}{
		{"no provider file", []string{}, "--clusterprofile-provider-file must be given"},
		{"an argument that is not a flag", []string{"--clusterprofile-provider-file", "a", "b"}, `unexpected argument \"b\"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			output, exitCode := exampletest.Run(t, test.args...)
			g.Expect(exitCode).To(Equal(1))
			g.Expect(output).To(ContainSubstring(test.text))
		})
	}
}
