// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNewBOM(t *testing.T) {
	g := NewWithT(t)
	got := newBOM(&debug.BuildInfo{
		GoVersion: "go1.26.8 X:nocoverageredesign",
		Path:      "a.example/main/cmd/tool",
		Main:      debug.Module{Path: "a.example/main", Version: "v1.0.0+dirty"},
		Deps: []*debug.Module{
			{Path: "b.example/Lib/v2", Version: "v2.1.0", Sum: "h1:abc="},
			{Path: "c.example/old", Version: "v0.1.0", Replace: &debug.Module{Path: "d.example/new", Version: "v0.2.0", Sum: "h1:def="}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "-ldflags", Value: "-s"}},
	})

	g.Expect(got.Metadata.Component).To(Equal(component{
		Ref: "pkg:golang/a.example/main@v1.0.0%2Bdirty#cmd/tool", Type: "application", Name: "tool", Version: "v1.0.0+dirty",
		PURL:       "pkg:golang/a.example/main@v1.0.0%2Bdirty#cmd/tool",
		Properties: []property{{Name: "rollcall:build:GOOS", Value: "linux"}},
	}))
	refs := []string{"pkg:golang/stdlib@1.26.8", "pkg:golang/b.example/Lib/v2@v2.1.0", "pkg:golang/d.example/new@v0.2.0"}
	var found []string
	for _, c := range got.Components {
		g.Expect(c.PURL).To(Equal(c.Ref))
		found = append(found, c.Ref)
	}
	g.Expect(found).To(Equal(refs))
	g.Expect(got.Components[2].Properties).To(Equal([]property{{Name: "rollcall:go:sum", Value: "h1:def="}}))
	g.Expect(got.Dependencies).To(Equal([]dependency{{Ref: got.Metadata.Component.Ref, DependsOn: refs}}))
}

func TestProgram(t *testing.T) {
	g := NewWithT(t)
	program, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	var out bytes.Buffer
	g.Expect(run(&out, []string{program})).To(Succeed())
	var got bom
	g.Expect(json.Unmarshal(out.Bytes(), &got)).To(Succeed())
	g.Expect(got.Format).To(Equal("CycloneDX"))

	file := filepath.Join(t.TempDir(), "bom.json")
	g.Expect(run(nil, []string{"-out", file, program})).To(Succeed())
	g.Expect(os.ReadFile(file)).To(Equal(out.Bytes()), "the same program gives the same output")

	g.Expect(got.Components[0].Name).To(Equal("stdlib"))
	g.Expect(got.Components[0].Version).To(HavePrefix(strings.TrimPrefix(strings.Fields(runtime.Version())[0], "go")))
}

func TestErrors(t *testing.T) {
	noProgram := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(noProgram, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		want string
	}{
		{name: "no program is given", want: "usage: sbom [-out FILE] PROGRAM"},
		{name: "an unknown flag is given", args: []string{"-output", "x", noProgram}, want: "-output"},
		{name: "the file does not exist", args: []string{noProgram + "x"}, want: "no such file"},
		{name: "the file is not a Go program", args: []string{noProgram}, want: noProgram},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var out bytes.Buffer
			g.Expect(run(&out, tt.args)).To(MatchError(ContainSubstring(tt.want)))
			g.Expect(out.String()).To(BeEmpty())
		})
	}
}
