// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestFilesAreUpToDate(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	names, err := written()
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(maps.Keys(files)); !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("files %v, want %v; run make generate", names, want)
	}
	for name, want := range files {
		if content, err := os.ReadFile(filepath.Join(out, name)); err == nil && !bytes.Equal(content, want) {
			t.Errorf("%s is out of date; run make generate", name)
		}
	}
}

// The checks of test/apicompat must hold for their paths too.
func TestSignatures(t *testing.T) {
	sources, err := filepath.Glob(filepath.Join(root, "test", "apicompat", "*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no files, %v", err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	imports := map[string]bool{}
	for _, source := range sources {
		file, err := parser.ParseFile(set, source, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			imports[rewrite(spec)] = true
		}
		files = append(files, file)
	}
	compat := filepath.Join(root, "compat", "multicluster-runtime")
	listed, err := list(compat, slices.Sorted(maps.Keys(imports)), "-mod=mod", "-modfile="+copyOfModule(t, compat))
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Importer: importing(set, listed), Error: func(err error) { t.Error(err) }}
	_, _ = config.Check("apicompat", set, files, nil)
}

// copyOfModule returns the path of a copy of a go.mod file, with its go.sum, to which the
// modules that only tests import can be added.
func copyOfModule(t *testing.T, dir string) string {
	copied := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(copied, "go.mod")
}

// rewrite makes an import one of their package, and returns its path.
func rewrite(spec *ast.ImportSpec) string {
	path, _ := strconv.Unquote(spec.Path.Value)
	dir, ok := packages[strings.TrimPrefix(path, ours+"/")]
	if !ok {
		return path
	}
	if dir == "." {
		spec.Name = ast.NewIdent("mc")
		path = theirs
	} else {
		path = theirs + "/" + dir
	}
	spec.Path.Value = strconv.Quote(path)
	return path
}
