// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"io"
	"os"
	"sync"
)

// versions has the versions of executables, each of which is read once.
type versions struct {
	mu    sync.Mutex // guards known
	known map[string]func() version
}

type version struct{ name, sha256 string }

// of returns the version in a Go executable, else its digest, else nothing.
func (v *versions) of(path string) (name, digest string) {
	v.mu.Lock()
	if v.known == nil {
		v.known = map[string]func() version{}
	}
	if v.known[path] == nil {
		v.known[path] = sync.OnceValue(func() version { return versionOf(path) })
	}
	read := v.known[path]
	v.mu.Unlock()
	found := read()
	return found.name, found.sha256
}

func versionOf(path string) version {
	if name := PluginVersion(path); name != "" {
		return version{name: name}
	}
	digest, err := PluginDigest(path)
	if err != nil {
		return version{}
	}
	return version{sha256: digest}
}

// PluginVersion returns the module and the version in a Go executable, or its commit, or ""
// if it has none. It does not run the plugin: not every program does nothing but print its
// version if it is asked to.
func PluginVersion(path string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return ""
	}
	name := info.Main.Version
	if name == "" || name == "(devel)" {
		name = ""
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				name = setting.Value[:min(12, len(setting.Value))]
			}
		}
	}
	if name == "" {
		return ""
	}
	return cmp.Or(info.Main.Path, info.Path) + " " + name
}

// PluginDigest returns the SHA-256 digest of a file in hexadecimal form, as
// credentials.AllowedCommand has it.
func PluginDigest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
