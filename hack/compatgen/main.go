// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Compatgen writes the module compat/multicluster-runtime: the packages of
// sigs.k8s.io/multicluster-runtime, with an alias for everything that our
// package exports.
//
//	go run ./hack/compatgen
//
// Packages that do not exist here are left out, and are written once they do.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

//go:generate go run .

const (
	ours   = "github.com/rollcall-dev/rollcall"
	theirs = "sigs.k8s.io/multicluster-runtime"
	// file is the name of the only file of each package.
	file = "zz_generated.alias.go"
)

// root and out are relative to this folder, in which go generate runs.
var (
	root = filepath.Join("..", "..")
	out  = filepath.Join(root, "compat", "multicluster-runtime")
)

// packages maps directories below our root to those below theirs. It lists all
// that they have.
var packages = map[string]string{
	"pkg/mc":                                             ".",
	"pkg/mc/builder":                                     "pkg/builder",
	"pkg/mc/clusters":                                    "pkg/clusters",
	"pkg/mc/context":                                     "pkg/context",
	"pkg/mc/controller":                                  "pkg/controller",
	"pkg/mc/handler":                                     "pkg/handler",
	"pkg/mc/manager":                                     "pkg/manager",
	"pkg/mc/manager/coordinator/basic":                   "pkg/manager/coordinator/basic",
	"pkg/mc/manager/coordinator/sharded":                 "pkg/manager/coordinator/sharded",
	"pkg/mc/manager/coordinator/sharded/peers":           "pkg/manager/coordinator/sharded/peers",
	"pkg/mc/manager/coordinator/sharded/sharder":         "pkg/manager/coordinator/sharded/sharder",
	"pkg/mc/multicluster":                                "pkg/multicluster",
	"pkg/mc/reconcile":                                   "pkg/reconcile",
	"pkg/mc/source":                                      "pkg/source",
	"providers/cluster-api":                              "providers/cluster-api",
	"providers/cluster-inventory-api":                    "providers/cluster-inventory-api",
	"providers/cluster-inventory-api/kubeconfigstrategy": "providers/cluster-inventory-api/kubeconfigstrategy",
	"providers/clusters":                                 "providers/clusters",
	"providers/file":                                     "providers/file",
	"providers/kind":                                     "providers/kind",
	"providers/kubeconfig":                               "providers/kubeconfig",
	"providers/multi":                                    "providers/multi",
	"providers/namespace":                                "providers/namespace",
	"providers/nop":                                      "providers/nop",
	"providers/single":                                   "providers/single",
}

// rootName is the name of their root package; ours is mc.
const rootName = "multiclusterruntime"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "compatgen:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := generate()
	if err != nil {
		return err
	}
	stale, err := written()
	if err != nil {
		return err
	}
	for _, name := range stale {
		if _, ok := files[name]; !ok {
			if err := os.Remove(filepath.Join(out, name)); err != nil {
				return err
			}
		}
	}
	for name, content := range files {
		path := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the content of all files by their names below out.
func generate() (map[string][]byte, error) {
	var dirs []string
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if sources, _ := filepath.Glob(filepath.Join(root, dir, "*.go")); len(sources) > 0 {
			dirs = append(dirs, dir)
		}
	}
	loaded, err := load(dirs)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, dir := range dirs {
		content, err := write(loaded[dir])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		files[filepath.Join(packages[dir], file)] = content
	}
	return files, nil
}

// written returns the names of the generated files that exist below out.
func written() ([]string, error) {
	var names []string
	err := filepath.WalkDir(out, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != file {
			return err
		}
		name, err := filepath.Rel(out, path)
		names = append(names, name)
		return err
	})
	return names, err
}
