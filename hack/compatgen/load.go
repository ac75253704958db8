// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// source is one of our packages.
type source struct {
	types *types.Package
	docs  map[string]string // of its exported names
}

// load type-checks the packages in directories below root.
func load(dirs []string) (map[string]*source, error) {
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, ours+"/"+dir)
	}
	listed, err := list(root, paths)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	imports := importing(set, listed)
	loaded := map[string]*source{}
	for _, dir := range dirs {
		path := ours + "/" + dir
		p := listed[path]
		var files []*ast.File
		for _, name := range p.GoFiles {
			parsed, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, parsed)
		}
		config := types.Config{Importer: imports}
		pkg, err := config.Check(path, set, files, nil)
		if err != nil {
			return nil, err
		}
		docs, err := doc.NewFromFiles(set, files, path)
		if err != nil {
			return nil, err
		}
		loaded[dir] = &source{types: pkg, docs: comments(docs)}
	}
	return loaded, nil
}

// listedPackage is what "go list -json" prints.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// list returns the packages and all that they import, by path, and compiles
// them. It runs in a directory of the module that imports them.
func list(dir string, paths []string, flags ...string) (map[string]listedPackage, error) {
	arguments := slices.Concat([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, flags, paths)
	cmd := exec.Command("go", arguments...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	listed := map[string]listedPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listedPackage
		if err := decoder.Decode(&p); err == io.EOF {
			return listed, nil
		} else if err != nil {
			return nil, err
		}
		listed[p.ImportPath] = p
	}
}

// importing returns an importer of compiled packages.
func importing(set *token.FileSet, listed map[string]listedPackage) types.Importer {
	return importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		if p, ok := listed[path]; ok && p.Export != "" {
			return os.Open(p.Export)
		}
		return nil, errors.New("no export data")
	})
}

// comments returns the doc comments of names in a package, with the empty name for
// the comment of the package.
func comments(p *doc.Package) map[string]string {
	found := map[string]string{"": p.Doc}
	values := func(groups []*doc.Value) {
		for _, group := range groups {
			for _, spec := range group.Decl.Specs {
				value := spec.(*ast.ValueSpec)
				text := value.Doc.Text()
				if text == "" && len(group.Names) == 1 {
					text = group.Doc
				}
				for _, name := range value.Names {
					found[name.Name] = text
				}
			}
		}
	}
	functions := func(all []*doc.Func) {
		for _, f := range all {
			found[f.Name] = f.Doc
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions(p.Funcs)
	for _, t := range p.Types {
		found[t.Name] = t.Doc
		values(t.Consts)
		values(t.Vars)
		functions(t.Funcs)
	}
	return found
}

// comment returns a doc comment with a text, or "".
func comment(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("// "+line, " \n") + "\n")
	}
	return b.String()
}
