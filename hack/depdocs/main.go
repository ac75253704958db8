// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Depdocs checks that docs/dependencies.md has a row for each direct dependency
// and each tool of this repository's modules, and none for anything else. A row
// begins with the path, as code:
//
//	| `github.com/go-logr/logr` | the logging interface … |
//
// It runs in the repository's root, prints a line per problem, and exits with 1
// if there is any.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const table = "docs/dependencies.md"

var modules = []string{".", "hack/controlplane", "hack/release", "hack/tools", "hack/tools/apidiff"}

func main() {
	problems, err := run()
	if err != nil {
		problems = append(problems, fmt.Sprintf("depdocs: %v", err))
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

func run() ([]string, error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, dir := range modules {
		cmd := exec.Command("go", "-C", dir, "mod", "edit", "-json")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go mod edit in %s: %w", dir, err)
		}
		direct, err := directPaths(out)
		if err != nil {
			return nil, fmt.Errorf("go.mod of %s: %w", dir, err)
		}
		paths = append(paths, direct...)
	}
	return compare(string(text), paths), nil
}

// directPaths returns the direct dependencies and the tools of a go.mod, given as
// the output of "go mod edit -json".
func directPaths(goMod []byte) ([]string, error) {
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	if err := json.Unmarshal(goMod, &file); err != nil {
		return nil, err
	}
	var paths []string
	for _, module := range file.Require {
		if !module.Indirect {
			paths = append(paths, module.Path)
		}
	}
	for _, tool := range file.Tool {
		paths = append(paths, tool.Path)
	}
	return paths, nil
}

var row = regexp.MustCompile("(?m)^\\| `([^`]+)` +\\| *(.*?) *\\|$")

// compare returns a line per difference between the table's rows and paths.
func compare(text string, paths []string) []string {
	var problems []string
	var rows []string
	for _, match := range row.FindAllStringSubmatch(text, -1) {
		path, reason := match[1], match[2]
		switch {
		case slices.Contains(rows, path):
			problems = append(problems, fmt.Sprintf("%s: two rows for %s", table, path))
		case !slices.Contains(paths, path):
			problems = append(problems, fmt.Sprintf("%s: %s is neither a direct dependency nor a tool", table, path))
		case strings.Trim(reason, "| ") == "":
			problems = append(problems, fmt.Sprintf("%s: no reason for %s", table, path))
		}
		rows = append(rows, path)
	}
	for _, path := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		if !slices.Contains(rows, path) {
			problems = append(problems, fmt.Sprintf("%s: no row for %s", table, path))
		}
	}
	return problems
}
