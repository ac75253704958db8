// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/rollcall-dev/rollcall/providers/internal/files"
)

// lister lists the files that the options name.
type lister struct {
	options *Options
	log     logr.Logger
	last    map[string][]string // the files in each of KubeconfigDirs, when it could be read last
	failed  map[string]string   // why a folder cannot be read
}

func newLister(options *Options, log logr.Logger) *lister {
	return &lister{options: options, log: log, last: map[string][]string{}, failed: map[string]string{}}
}

// list returns the paths of the files, and those of the folders in which others may
// appear. A folder that cannot be read has the files that it had before.
func (l *lister) list() (paths []string, folders []files.Folder) {
	paths = slices.Clone(l.options.KubeconfigFiles)
	for _, dir := range l.options.KubeconfigDirs {
		found := &globber{}
		for _, glob := range l.options.KubeconfigGlobs {
			found.glob(dir, strings.Split(filepath.ToSlash(glob), "/"))
		}
		folders = append(folders, found.folders...)
		if found.err == nil {
			l.last[dir] = found.files
		}
		l.logChange(dir, found.err)
		paths = append(paths, l.last[dir]...)
	}
	return paths, folders
}

// logChange logs each reason why a folder cannot be read once, and the end.
func (l *lister) logChange(dir string, err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if l.failed[dir] == reason {
		return
	}
	l.failed[dir] = reason
	if reason == "" {
		l.log.Info("Folder with kubeconfigs can be read again", "folder", dir)
		return
	}
	l.log.Info("Cannot read a folder with kubeconfigs, keeping its clusters as they are", "folder", dir, "error", reason)
}

// globber finds files by patterns. Unlike path/filepath.Glob, it returns errors.
type globber struct {
	files   []string
	folders []files.Folder
	err     error
}

// glob finds the files in a folder that match the parts of a pattern. A folder that does
// not exist has none.
func (g *globber) glob(dir string, parts []string) {
	g.folders = append(g.folders, files.Folder{Dir: dir, Patterns: parts[:1]})
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !files.IsMissing(err) && g.err == nil {
			g.err = err
		}
		return
	}
	for _, entry := range entries {
		matches, _ := filepath.Match(parts[0], entry.Name())
		if !matches {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path) // follows symbolic links
		switch {
		case err != nil && files.IsMissing(err): // a link that leads nowhere
		case len(parts) > 1 && err == nil && info.IsDir():
			g.glob(path, parts[1:])
		case len(parts) == 1 && (err != nil || !info.IsDir()) && !slices.Contains(g.files, path):
			g.files = append(g.files, path)
		}
	}
}
