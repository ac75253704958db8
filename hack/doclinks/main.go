// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Doclinks checks the Markdown files below a directory, by default the current
// one:
//
//   - the targets of relative links and anchors exist;
//   - every file under docs/ is linked from README.md or docs/README.md, or from another
//     page of its folder below docs/;
//   - a code block below a comment "from: FILE" equals FILE from its package
//     clause on, and one below "part from: FILE" is a part of it.
//
// Links to other sites are ignored.
//
//	go run ./hack/doclinks [DIR]
//
// It prints a line per problem, and exits with 1 if there is any.
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
	problems, err := check(os.DirFS(root))
	if err != nil {
		problems = append(problems, fmt.Sprintf("doclinks: %v", err))
	}
	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// indexes are the files that must link to those under docs/.
var indexes = []string{"README.md", "docs/README.md"}

// check returns a line per problem in tree.
func check(tree fs.FS) ([]string, error) {
	pages, docs, err := read(tree)
	if err != nil {
		return nil, err
	}
	var problems []string
	found := map[string]bool{} // targets of links in the indexes, and of links to other than Markdown files
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		for _, quote := range pages[name].quotes {
			if problem := compare(tree, quote); problem != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s: %s", name, quote.line, quote.file, problem))
			}
		}
		for _, link := range pages[name].links {
			target, anchor, local := resolve(name, link.target)
			if !local {
				continue
			}
			if slices.Contains(indexes, name) || path.Ext(target) != ".md" || inChapter(name, target) {
				found[target] = true
			}
			if problem := follow(tree, pages, target, anchor); problem != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s: %s", name, link.line, link.target, problem))
			}
		}
	}
	for _, name := range docs {
		if !found[name] && !slices.Contains(indexes, name) {
			problems = append(problems, fmt.Sprintf("%s: linked from none of %s", name, strings.Join(indexes, ", ")))
		}
	}
	return problems, nil
}

// inChapter reports whether both pages are in the same folder below docs: such pages link
// to each other, and an index to one of them.
func inChapter(name, target string) bool {
	return path.Dir(name) == path.Dir(target) && strings.HasPrefix(name, "docs/") && path.Dir(name) != "docs" && name != target
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

// resolve returns the path below the root and the anchor of a link on the page
// from. It is not local if it points to another site.
func resolve(from, link string) (target, anchor string, local bool) {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Host != "" {
		return "", "", err != nil // reported as a missing file
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

// follow returns the problem with a link to target, or "".
func follow(tree fs.FS, pages map[string]page, target, anchor string) string {
	if _, err := fs.Stat(tree, target); err != nil {
		return "no such file"
	}
	if page, ok := pages[target]; ok && anchor != "" && !page.anchors[anchor] {
		return "no such heading"
	}
	return ""
}

// compare returns the problem with a quote of a file, or "".
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
