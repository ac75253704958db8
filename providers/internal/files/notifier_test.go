// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/rollcall-dev/rollcall/providers/internal/files"
)

// limit is shorter than the interval in which files are polled.
const limit = 5 * time.Second

// TestNotifier checks that each change is noticed without polling.
func TestNotifier(t *testing.T) {
	for _, test := range []struct {
		name    string
		files   []string
		folders []string // with all files but those that end in "~"
		steps   []func(t *testing.T, at func(string) string)
	}{
		{"written in place", []string{"a"}, nil, []func(*testing.T, func(string) string){
			func(t *testing.T, at func(string) string) { write(t, at("a"), "1") },
			func(t *testing.T, at func(string) string) { write(t, at("a"), "2") },
			func(t *testing.T, at func(string) string) { do(t, os.Remove(at("a"))) },
			func(t *testing.T, at func(string) string) { write(t, at("a"), "3") },
		}},
		{"renamed", []string{"a"}, nil, []func(*testing.T, func(string) string){
			func(t *testing.T, at func(string) string) { write(t, at("b"), "1"); do(t, os.Rename(at("b"), at("a"))) },
		}},
		{"a file in a folder", nil, []string{"dir"}, []func(*testing.T, func(string) string){
			func(t *testing.T, at func(string) string) { do(t, os.Mkdir(at("dir"), 0o700)) },
			func(t *testing.T, at func(string) string) { write(t, at("dir/x"), "1") },
			func(t *testing.T, at func(string) string) { write(t, at("dir/y"), "1") },
			func(t *testing.T, at func(string) string) { do(t, os.Rename(at("dir"), at("old"))) },
			func(t *testing.T, at func(string) string) { do(t, os.Mkdir(at("dir"), 0o700)) },
			func(t *testing.T, at func(string) string) { write(t, at("dir/x"), "1") },
			func(t *testing.T, at func(string) string) { do(t, os.RemoveAll(at("dir"))) },
		}},
		{"folders that appear later", []string{"a/b/c"}, nil, []func(*testing.T, func(string) string){
			func(t *testing.T, at func(string) string) { do(t, os.Mkdir(at("a"), 0o700)) },
			func(t *testing.T, at func(string) string) { do(t, os.Mkdir(at("a/b"), 0o700)) },
			func(t *testing.T, at func(string) string) { write(t, at("a/b/c"), "1") },
		}},
		{"a mounted Secret", []string{"mount/a"}, nil, []func(*testing.T, func(string) string){
			func(t *testing.T, at func(string) string) {
				do(t, os.MkdirAll(at("mount/..1"), 0o700), os.MkdirAll(at("mount/..2"), 0o700))
				write(t, at("mount/..1/a"), "1")
				write(t, at("mount/..2/a"), "2")
				do(t, os.Symlink("..1", at("mount/..data")), os.Symlink("..data/a", at("mount/a")))
			},
			func(t *testing.T, at func(string) string) {
				do(t, os.Symlink("..2", at("mount/..tmp")), os.Rename(at("mount/..tmp"), at("mount/..data")))
			},
		}},
		{"a chain of links", []string{"one"}, nil, []func(*testing.T, func(string) string){
			func(t *testing.T, at func(string) string) {
				do(t, os.MkdirAll(at("x/y"), 0o700), os.MkdirAll(at("z"), 0o700))
				do(t, os.Symlink(at("x/two"), at("one")), os.Symlink("../z/three", at("x/two")))
			},
			func(t *testing.T, at func(string) string) { write(t, at("z/three"), "1") },
			func(t *testing.T, at func(string) string) {
				do(t, os.Remove(at("x/two")), os.Symlink("y", at("x/two")))
			},
		}},
		{"a loop of links", []string{"a"}, nil, []func(*testing.T, func(string) string){
			func(t *testing.T, at func(string) string) { do(t, os.Symlink("a", at("a"))) },
			func(t *testing.T, at func(string) string) { do(t, os.Remove(at("a"))) },
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(path string) string { return filepath.Join(dir, path) }
			n := files.NewNotifier(logr.Discard())
			defer n.Close()
			var paths []string
			var folders []files.Folder
			for _, path := range test.files {
				paths = append(paths, at(path))
			}
			for _, path := range test.folders {
				folders = append(folders, files.Folder{Dir: at(path), Patterns: []string{"*[^~]"}})
			}
			quiet := func() { // until nothing is left to notice
				for n.Watch(paths, folders); len(n.C) > 0; n.Watch(paths, folders) {
					<-n.C
				}
			}
			quiet()
			for i, step := range test.steps {
				step(t, at)
				await(t, n, fmt.Sprintf("step %d", i+1))
				quiet()
			}
		})
	}
}

func await(t *testing.T, n *files.Notifier, what string) {
	t.Helper()
	select {
	case <-n.C:
	case <-time.After(limit):
		t.Fatalf("%s was not noticed", what)
	}
}

func TestAfter(t *testing.T) {
	n := files.NewNotifier(logr.Discard())
	defer n.Close()
	n.After(time.Hour)
	n.After(time.Millisecond)
	await(t, n, "the last call of After")
	n.After(time.Hour) // does not delay Close
}

func TestOtherNamesAreIgnored(t *testing.T) {
	dir := t.TempDir()
	n := files.NewNotifier(logr.Discard())
	defer n.Close()
	n.Watch([]string{filepath.Join(dir, "a[1]")}, []files.Folder{{Dir: dir, Patterns: []string{"*.yaml"}}})
	for len(n.C) > 0 {
		<-n.C
	}
	for _, name := range []string{"b", "a1", "x.yaml~"} {
		write(t, filepath.Join(dir, name), "1")
	}
	select {
	case <-n.C:
		t.Error("notified of a name that does not matter")
	case <-time.After(100 * time.Millisecond):
	}
	for _, name := range []string{"a[1]", "x.yaml"} {
		write(t, filepath.Join(dir, name), "1")
		await(t, n, name)
		for len(n.C) > 0 {
			<-n.C
		}
	}
}
