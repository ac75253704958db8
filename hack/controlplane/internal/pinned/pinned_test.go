// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package pinned

import "testing"

func TestVersion(t *testing.T) {
	module := Module{GoMod: []byte(`module example.com/m

require example.com/single v1.0.1

require (
	example.com/direct v1.2.3
	example.com/direct/v2 v2.0.0
	example.com/indirect v0.9.0 // indirect
)

replace example.com/replaced => example.com/other v1.1.1

tool example.com/tool
`)}
	tests := []struct{ name, path, want string }{
		{"a single requirement", "example.com/single", "v1.0.1"},
		{"a requirement in a block", "example.com/direct", "v1.2.3"},
		{"a path with another path as prefix", "example.com/direct/v2", "v2.0.0"},
		{"an indirect requirement", "example.com/indirect", "v0.9.0"},
		{"a replacement is not a requirement", "example.com/replaced", ""},
		{"a tool is not a requirement", "example.com/tool", ""},
		{"an unknown module", "example.com/unknown", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := module.Version(tt.path)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
