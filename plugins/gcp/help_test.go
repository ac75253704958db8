// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/gcp"
)

// TestExampleOfHelp runs the command that --help shows.
func TestExampleOfHelp(t *testing.T) {
	g := NewWithT(t)
	var help, output, failure bytes.Buffer
	g.Expect(plugin.Run(t.Context(), gcp.New(), []string{"--help"}, nil, &help, &failure)).To(Equal(plugin.ExitOK))
	_, example, found := strings.Cut(help.String(), "Examples:")
	g.Expect(found).To(BeTrue())
	example, _, _ = strings.Cut(example, "\n\n")
	parts := strings.Split(example, "'")
	g.Expect(parts).To(HaveLen(3), example)
	words := strings.Fields(parts[2])
	g.Expect(words[:2]).To(Equal([]string{"\\", gcp.New().Name()}))
	code := plugin.Run(t.Context(), gcp.New(), words[2:], []string{"KUBERNETES_EXEC_INFO=" + parts[1]}, &output, &failure)
	g.Expect(failure.String()).To(BeEmpty())
	g.Expect(code).To(Equal(plugin.ExitOK))
	g.Expect(output.String()).To(ContainSubstring("viewer@p1.iam.gserviceaccount.com"))
}
