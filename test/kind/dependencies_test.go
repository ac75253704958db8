// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// isCommandLine reports whether a package is part of mc-credential, which reads the clusters
// of kind too.
func isCommandLine(name string) bool {
	return name == "cmd/mc-credential" || name == "hack/clidocs" || name == "internal/cli" || strings.HasPrefix(name, "internal/cli/")
}

// Only what imports providers/kind depends on kind's library.
func TestDependencies(t *testing.T) {
	const library = "sigs.k8s.io/kind/"
	command := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "../../...")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var users []string
	all := 0
	for line := range strings.Lines(string(output)) {
		packages := strings.Fields(line)
		all++
		if slices.ContainsFunc(packages[1:], func(dependency string) bool { return strings.HasPrefix(dependency, library) }) {
			users = append(users, strings.TrimPrefix(packages[0], "github.com/rollcall-dev/rollcall/"))
		}
	}
	users = slices.DeleteFunc(users, isCommandLine)
	if want := []string{"examples/kind", "providers/kind"}; !slices.Equal(users, want) || all < 50 {
		t.Errorf("of %d packages, %v depend on %s, want %v", all, users, library, want)
	}

	// A module with ours, and providers other than this one. "make verify-tidy" checks that
	// its files are as "go mod tidy" writes them.
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join("..", "compat", name))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(content); strings.Contains(text, "sigs.k8s.io/kind ") || !strings.Contains(text, "sigs.k8s.io/controller-runtime ") {
			t.Errorf("test/compat/%s has the module of kind, or not that of controller-runtime", name)
		}
	}
}
