// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Doclinks checks the Markdown files of a tree, by default that of the current
// directory: relative links lead to files that exist, anchors to headings, and
// every file under docs/ can be found from README.md or docs/README.md, and a
// code block below a comment "from: FILE" shows what FILE holds from its
// package clause on, and below "part from: FILE" a part of it. It leaves links
// to other sites alone.
//
//	go run ./hack/doclinks [DIR]
//
// It prints a line per fault, and exits with 1 if there is any.
package main

import (
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	faults, err := check(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "doclinks:", err)
		os.Exit(1)
	}
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, fault)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// indexes are the files from which those under docs/ are to be found.
var indexes = []string{"README.md", "docs/README.md"}

// check returns a sentence per fault in tree.
func check(tree fs.FS) ([]string, error) {
	pages, docs, err := read(tree)
	if err != nil {
		return nil, err
	}
	var faults []string
	found := map[string]bool{} // files that are linked from where it counts
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		for _, quote := range pages[name].quotes {
			if fault := compare(tree, quote); fault != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: %s: %s", name, quote.line, quote.file, fault))
			}
		}
		for _, link := range pages[name].links {
			target, anchor, local := resolve(name, link.target)
			if !local {
				continue
			}
			if slices.Contains(indexes, name) || path.Ext(target) != ".md" {
				found[target] = true
			}
			if fault := follow(tree, pages, target, anchor); fault != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: %s: %s", name, link.line, link.target, fault))
			}
		}
	}
	for _, name := range docs {
		if !found[name] && !slices.Contains(indexes, name) {
			faults = append(faults, fmt.Sprintf("%s: linked from none of %s", name, strings.Join(indexes, ", ")))
		}
	}
	return faults, nil
}

// read parses all Markdown files of tree, and lists all files under docs/.
func read(tree fs.FS) (pages map[string]page, docs []string, err error) {
	pages = map[string]page{}
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); name != "." && (base[0] == '.' || base == "bin" || base == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasPrefix(name, "docs/") {
			docs = append(docs, name)
		}
		if path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		pages[name] = parse(string(text))
		return err
	})
	return pages, docs, err
}

// resolve turns a link on the page from into a path below the root and an
// anchor, unless the link leads to another site.
func resolve(from, link string) (target, anchor string, local bool) {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return "", "", err != nil // what cannot be parsed leads nowhere
	}
	switch {
	case u.Path == "":
		target = from
	case path.IsAbs(u.Path):
		target = path.Clean(strings.TrimLeft(u.Path, "/"))
	default:
		target = path.Join(path.Dir(from), u.Path)
	}
	return target, u.Fragment, true
}

// follow says what is wrong with a link to target, if anything.
func follow(tree fs.FS, pages map[string]page, target, anchor string) string {
	if _, err := fs.Stat(tree, target); err != nil {
		return "no such file"
	}
	if page, ok := pages[target]; ok && anchor != "" && !page.anchors[anchor] {
		return "no such heading"
	}
	return ""
}

// compare says what is wrong with a quote of a file, if anything.
func compare(tree fs.FS, q quote) string {
	text, err := fs.ReadFile(tree, q.file)
	if err != nil {
		return "no such file"
	}
	source := string(text)
	if at := strings.Index(source, "\npackage "); at >= 0 {
		source = source[at+1:]
	}
	if q.part && strings.Contains(source, q.text) {
		return ""
	}
	if strings.TrimSpace(source) != strings.TrimSpace(q.text) {
		return "the code block below differs from the file"
	}
	return ""
}
