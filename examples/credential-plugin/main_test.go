// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/plugintest"
)

// If this variable is set, the test binary is the plugin.
const programVariable = "ROLLCALL_EXAMPLE"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

// newFolder returns a folder with the token of c1, next to a file outside of it.
func newFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tokens")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"c1": "secret-1\n", "../other": "secret-2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestConformance(t *testing.T) {
	plugintest.Run(t, plugintest.Command{
		Path:    os.Args[0],
		Args:    []string{"--dir=" + newFolder(t)},
		Env:     []string{programVariable + "=1", "GORACE=atexit_sleep_ms=0"},
		Cluster: &plugin.Cluster{Server: "https://c1:6443", Config: json.RawMessage(`{"file":"c1"}`)},
	})
}

func TestNameInDocs(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../docs/write-a-plugin.md")
	g.Expect(err).NotTo(HaveOccurred())
	name := (&files{}).Name()
	g.Expect(string(page)).To(ContainSubstring("    go build -o bin/" + name + " ./examples/credential-plugin\n"))
	g.Expect(string(page)).To(ContainSubstring("    command: " + name + "\n"))
}

func TestRejectedConfigs(t *testing.T) {
	for _, test := range []struct {
		name, config string
		code         int
		text         string
	}{
		{"a file outside of the folder", `{"file":"../other"}`, plugin.ExitFailed, "path escapes from parent"},
		{"no file", `{}`, plugin.ExitBadRequest, "file must be given"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var stdout, stderr bytes.Buffer
			code := plugin.Run(t.Context(), &files{}, []string{"--dir=" + newFolder(t)}, []string{
				`KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
				"spec":{"cluster":{"server":"https://c1:6443","config":` + test.config + `}}}`,
			}, &stdout, &stderr)
			g.Expect(code).To(Equal(test.code))
			g.Expect(stdout.String()).To(BeEmpty())
			g.Expect(stderr.String()).To(ContainSubstring(test.text))
		})
	}
}
