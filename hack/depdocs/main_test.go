// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	tests := []struct {
		name  string
		text  string
		paths []string
		want  []string
	}{
		{
			name:  "a row for each dependency, and text around them",
			text:  "# Title\n\n| Module | Reason |\n|---|---|\n| `a.example/x` | for x |\n| `b.example/y`   | for y |\n\nEnd `c`.\n",
			paths: []string{"b.example/y", "a.example/x", "a.example/x"},
		},
		{
			name:  "a dependency without a row",
			text:  "| `a.example/x` | for x |\n",
			paths: []string{"a.example/x", "a.example/x/v2"},
			want:  []string{"docs/dependencies.md: no row for a.example/x/v2"},
		},
		{
			name: "a row for a removed dependency",
			text: "| `a.example/x` | for x |\n",
			want: []string{"docs/dependencies.md: a.example/x is neither a direct dependency nor a tool"},
		},
		{
			name:  "a row without a reason",
			text:  "| `a.example/x` | |\n",
			paths: []string{"a.example/x"},
			want:  []string{"docs/dependencies.md: no reason for a.example/x"},
		},
		{
			name:  "two rows for one dependency",
			text:  "| `a.example/x` | for x |\n| `a.example/x` | for x |\n",
			paths: []string{"a.example/x"},
			want:  []string{"docs/dependencies.md: two rows for a.example/x"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := compare(tt.text, tt.paths); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestDirectPaths(t *testing.T) {
	got, err := directPaths([]byte(`{
		"Module": {"Path": "example.com/m"},
		"Require": [
			{"Path": "a.example/direct", "Version": "v1.0.0"},
			{"Path": "a.example/indirect", "Version": "v1.0.0", "Indirect": true}
		],
		"Tool": [{"Path": "a.example/indirect/cmd/tool"}]
	}`))
	want := []string{"a.example/direct", "a.example/indirect/cmd/tool"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}
