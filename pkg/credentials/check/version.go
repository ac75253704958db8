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
	if info, err := buildinfo.ReadFile(path); err == nil {
		name := info.Main.Version
		if name == "" || name == "(devel)" {
			for _, setting := range info.Settings {
				if setting.Key == "vcs.revision" {
					name = setting.Value[:min(12, len(setting.Value))]
				}
			}
		}
		if name != "" && name != "(devel)" {
			return version{name: cmp.Or(info.Main.Path, info.Path) + " " + name}
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return version{}
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return version{}
	}
	return version{sha256: hex.EncodeToString(hash.Sum(nil))}
}
