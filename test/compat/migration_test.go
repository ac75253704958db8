// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The command of docs/migration.md makes this package and the library one that
// needs no replace line.
func TestImportPathsCommand(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "migration.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```sh\n")
	command, _, _ := strings.Cut(rest, "```")
	if !found || !strings.Contains(command, "sed") {
		t.Fatalf("no command, but %q", command)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "doc.go", "program_test.go", filepath.Join("steps", "steps.go")} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	run("sh", "-ec", command)
	run("go", "mod", "edit", "-droprequire=sigs.k8s.io/multicluster-runtime", "-dropreplace=sigs.k8s.io/multicluster-runtime",
		"-replace=github.com/rollcall-dev/rollcall="+root)
	if out := run("go", "list", "-test", "-deps", "./..."); strings.Contains(out, "sigs.k8s.io/multicluster-runtime") {
		t.Errorf("there are imports left:\n%s", out)
	}
	run("go", "vet", "./...")
	files, err := filepath.Glob(filepath.Join(dir, "*.bak"))
	if err != nil || len(files) > 0 {
		t.Errorf("the command leaves %v, %v", files, err)
	}
}
