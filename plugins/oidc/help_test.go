// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/oidc"
)

// TestExampleOfHelp runs the command that --help shows.
func TestExampleOfHelp(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	g.Expect(os.WriteFile("hub.kubeconfig", []byte(`{"apiVersion":"v1","kind":"Config","current-context":"x",
		"clusters":[{"name":"c","cluster":{"server":"https://hub.example.com"}}],
		"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{"token":"t"}}]}`), 0o600)).To(Succeed())
	var help, output, failure bytes.Buffer
	g.Expect(plugin.Run(t.Context(), oidc.New(), []string{"--help"}, nil, &help, &failure)).To(Equal(plugin.ExitOK))
	_, example, found := strings.Cut(help.String(), "Examples:")
	g.Expect(found).To(BeTrue())
	example, _, _ = strings.Cut(example, "\n\n")
	parts := strings.Split(example, "'")
	g.Expect(parts).To(HaveLen(3), example)
	words := strings.Fields(strings.ReplaceAll(parts[2], "\\\n", ""))
	g.Expect(words[0]).To(Equal(oidc.New().Name()))
	code := plugin.Run(t.Context(), oidc.New(), words[1:], []string{"KUBERNETES_EXEC_INFO=" + parts[1]}, &output, &failure)
	g.Expect(failure.String()).To(BeEmpty())
	g.Expect(code).To(Equal(plugin.ExitOK))
	g.Expect(output.String()).To(ContainSubstring("request a token of service account fleet/members with audience c1"))
}
