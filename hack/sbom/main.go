// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Sbom prints the software bill of materials of a Go program: its modules and the
// version of Go, as the Go command has recorded them in the file. The format is
// CycloneDX 1.5, in JSON. The same program gives the same output.
//
//	go run ./hack/sbom [-out FILE] bin/mc-credential
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"runtime/debug"
	"strings"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %v\n", err)
		os.Exit(1)
	}
}

func run(stdout io.Writer, args []string) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	file := flags.String("out", "", "the `file` to write, instead of standard output")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w; usage: sbom [-out FILE] PROGRAM", err)
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("got %d arguments; usage: sbom [-out FILE] PROGRAM", flags.NArg())
	}
	info, err := buildinfo.ReadFile(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("reading the build information of %s: %w", flags.Arg(0), err)
	}
	text, err := json.MarshalIndent(newBOM(info), "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if *file != "" {
		return os.WriteFile(*file, text, 0o644)
	}
	_, err = stdout.Write(text)
	return err
}

type bom struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func newBOM(info *debug.BuildInfo) bom {
	program := newComponent("application", &info.Main)
	program.Name = path.Base(info.Path)
	program.PURL = packageURL(info.Main.Path, info.Main.Version, strings.TrimPrefix(info.Path, info.Main.Path))
	program.Ref = program.PURL
	for _, setting := range info.Settings {
		switch setting.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "vcs.revision", "vcs.modified":
			program.Properties = append(program.Properties, property{Name: "rollcall:build:" + setting.Key, Value: setting.Value})
		}
	}

	goVersion, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	components := []component{newComponent("library", &debug.Module{Path: "stdlib", Version: goVersion})}
	for _, module := range info.Deps {
		for module.Replace != nil {
			module = module.Replace
		}
		components = append(components, newComponent("library", module))
	}

	// Which module needs which other one is not in the file.
	all := dependency{Ref: program.Ref, DependsOn: make([]string, 0, len(components))}
	for _, c := range components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	return bom{
		Format: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Metadata:     metadata{Component: program},
		Components:   components,
		Dependencies: []dependency{all},
	}
}

func newComponent(kind string, module *debug.Module) component {
	c := component{Type: kind, Name: module.Path, Version: module.Version, PURL: packageURL(module.Path, module.Version, "")}
	c.Ref = c.PURL
	if module.Sum != "" {
		// The sum of go.sum, which is not the digest of a file.
		c.Properties = []property{{Name: "rollcall:go:sum", Value: module.Sum}}
	}
	return c
}

// packageURL returns the package URL of a module, or of a package below it.
func packageURL(module, version, subpath string) string {
	escape := func(s string) string { return strings.ReplaceAll(url.PathEscape(s), "+", "%2B") }
	segments := strings.Split(module, "/")
	for i := range segments {
		segments[i] = escape(segments[i])
	}
	purl := "pkg:golang/" + strings.Join(segments, "/")
	if version != "" {
		purl += "@" + escape(version)
	}
	if subpath = strings.Trim(subpath, "/"); subpath != "" {
		purl += "#" + subpath
	}
	return purl
}
