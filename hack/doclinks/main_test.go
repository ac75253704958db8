// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestCheck(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{
			name: "links to files, folders and headings that exist",
			files: map[string]string{
				"README.md":        "[a](docs/guide.md) [b](docs) [c](docs/guide.md#two-words) [d](#here)\n# Here\n",
				"docs/guide.md":    "# Two words\n[up](../README.md#here) [root](/README.md)\n![](picture.png)\n",
				"docs/picture.png": "",
			},
		},
		{
			name:  "a missing file",
			files: map[string]string{"README.md": "ok\n[a](nowhere.md)\n"},
			want:  []string{"README.md:2: nowhere.md: no such file"},
		},
		{
			name:  "a file above the root",
			files: map[string]string{"README.md": "[a](../other.md)\n"},
			want:  []string{"README.md:1: ../other.md: no such file"},
		},
		{
			name:  "a missing heading, on another page and on this one",
			files: map[string]string{"README.md": "[a](b.md#c) [d](#d)\n", "b.md": "# B\n"},
			want:  []string{"README.md:1: b.md#c: no such heading", "README.md:1: #d: no such heading"},
		},
		{
			name: "reference definitions, titles, images in links, and HTML are links",
			files: map[string]string{
				"README.md": "[a]: one.md\n[b](two.md \"title\")\n[![c](three.png)](four.md)\n<img src=\"five.png\">\n",
			},
			want: []string{
				"README.md:1: one.md: no such file",
				"README.md:2: two.md: no such file",
				"README.md:3: three.png: no such file",
				"README.md:3: four.md: no such file",
				"README.md:4: five.png: no such file",
			},
		},
		{
			name: "links in code are ignored",
			files: map[string]string{
				"README.md": "`[a](one.md)`\n```md\n[b](two.md)\n# Heading\n~~~\n```\n[c](#heading)\n",
			},
			want: []string{"README.md:7: #heading: no such heading"},
		},
		{
			name:  "other sites, and lines of source files, are ignored",
			files: map[string]string{"README.md": "[a](https://example.com/x.md) [b](main.go#L3) [c](mailto:a@example.com)\n", "main.go": ""},
		},
		{
			name: "anchors of common renderers",
			files: map[string]string{
				"README.md": "## `make` it [so](#so)!\n## Über-uns_1\n# So\n# So\n<a id=\"Own\"></a>\n" +
					"[a](#make-it-so) [b](#über-uns_1) [c](#so-1) [d](#Own)\n",
			},
		},
		{
			name: "a page that neither README.md nor docs/README.md links to",
			files: map[string]string{
				"README.md":      "[docs](docs/README.md)\n",
				"docs/README.md": "[a](a.md)\n",
				"docs/a.md":      "[b](b.md)\n",
				"docs/b.md":      "",
			},
			want: []string{"docs/b.md: linked from none of README.md, docs/README.md"},
		},
		{
			name: "a code block that equals the file",
			files: map[string]string{
				"README.md": "<!-- from: main.go -->\n```go\npackage main\n\nfunc main() {}\n```\n```\nother\n```\n",
				"main.go":   "// Licence\n\npackage main\n\nfunc main() {}\n",
			},
		},
		{
			name: "a code block that differs, and one of a missing file",
			files: map[string]string{
				"README.md": "<!-- from: main.go -->\n```go\npackage old\n```\n<!-- from: gone.go -->\n```\n```\n",
				"main.go":   "// Licence\n\npackage main\n",
			},
			want: []string{
				"README.md:1: main.go: the code block below differs from the file",
				"README.md:5: gone.go: no such file",
			},
		},
		{
			name: "a part of a file, and one that differs",
			files: map[string]string{
				"README.md": "<!-- part from: main.go -->\n```go\nfunc a() {}\n```\n<!-- part from: main.go -->\n```go\nfunc c() {}\n```\n",
				"main.go":   "package main\n\nfunc a() {}\n\nfunc b() {}\n",
			},
			want: []string{"README.md:5: main.go: the code block below differs from the file"},
		},
		{
			name: "hidden folders, bin and testdata are ignored",
			files: map[string]string{
				".cache/a.md": "[x](x.md)\n", "bin/a.md": "[x](x.md)\n", "pkg/testdata/a.md": "[x](x.md)\n",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, text := range tt.files {
				tree[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := check(tree)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
