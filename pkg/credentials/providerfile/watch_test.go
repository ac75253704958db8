// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providerfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// fileOf returns the content of a provider file with these providers.
func fileOf(names ...string) string {
	content := "providers:\n"
	for _, name := range names {
		content += "- name: " + name + "\n  execConfig: {apiVersion: client.authentication.k8s.io/v1, command: /x}\n"
	}
	return content
}

func namesOf(file *providerfile.File) []string {
	names := make([]string, len(file.Providers))
	for i := range file.Providers {
		names[i] = file.Providers[i].Name
	}
	return names
}

// settled returns the version after a changed file has settled.
func settled(watcher *providerfile.Watcher) *providerfile.File {
	watcher.File()
	time.Sleep(400 * time.Millisecond)
	return watcher.File()
}

// volume is a folder as the kubelet mounts a ConfigMap.
type volume struct {
	t   *testing.T
	dir string
	n   int
}

func (v *volume) path() string { return filepath.Join(v.dir, "providers.yaml") }

// set makes "..data", through which the file is reached, a link to a new folder.
func (v *volume) set(content string) {
	v.t.Helper()
	v.n++
	folder := filepath.Join(v.dir, "..version-"+string(rune('a'+v.n)))
	data := filepath.Join(v.dir, "..data")
	for _, err := range []error{
		os.Mkdir(folder, 0o700),
		os.WriteFile(filepath.Join(folder, "providers.yaml"), []byte(content), 0o600),
		os.Symlink(filepath.Base(folder), data+"_tmp"),
		os.Rename(data+"_tmp", data),
	} {
		if err != nil {
			v.t.Fatal(err)
		}
	}
	if v.n == 1 {
		if err := os.Symlink(filepath.Join("..data", "providers.yaml"), v.path()); err != nil {
			v.t.Fatal(err)
		}
	}
}

// inPlace writes like an editor without a temporary file.
func inPlace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replaced writes like an editor with a temporary file.
func replaced(t *testing.T, path, content string) {
	t.Helper()
	inPlace(t, path+"~", content)
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func TestWatcherRun(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(v *volume, content string)
	}{
		{"written in place", func(v *volume, content string) { inPlace(v.t, v.path(), content) }},
		{"replaced", func(v *volume, content string) { replaced(v.t, v.path(), content) }},
		{"removed and written", func(v *volume, content string) {
			if v.n++; v.n > 1 {
				if err := os.Remove(v.path()); err != nil {
					v.t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
			}
			inPlace(v.t, v.path(), content)
		}},
		{"a mounted ConfigMap", (*volume).set},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				v := &volume{t: t, dir: t.TempDir()}
				test.set(v, fileOf("a"))
				watcher, err := providerfile.NewWatcher(v.path(), providerfile.WatcherOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				changes, others := 0, 0
				var running sync.WaitGroup
				running.Go(func() { watcher.Run(ctx, watcher.Current(), func() { changes++ }) })
				running.Go(func() { watcher.Run(t.Context(), watcher.Current(), func() { others++ }) })
				settle := func() { time.Sleep(3 * time.Second); synctest.Wait() }

				settle()
				g.Expect(changes).To(BeZero())
				test.set(v, fileOf("a", "b"))
				settle()
				g.Expect(changes).To(Equal(1))
				test.set(v, fileOf("a", "b")+"# a comment\n")
				settle()
				g.Expect(changes).To(Equal(1), "the entries are the same")
				test.set(v, "providers: [{}]")
				settle()
				g.Expect(changes).To(Equal(1), "an invalid version is not used")
				g.Expect(namesOf(watcher.File())).To(Equal([]string{"a", "b"}))
				test.set(v, fileOf("c"))
				settle()
				g.Expect(changes).To(Equal(2))

				cancel()
				settle()
				test.set(v, fileOf("a"))
				settle()
				g.Expect(changes).To(Equal(2), "not after the context has ended")
				g.Expect(others).To(Equal(3))
			})
		})
	}
}

func TestWatcherRunReportsChangesByFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "providers.yaml")
		inPlace(t, path, fileOf("a"))
		watcher, err := providerfile.NewWatcher(path, providerfile.WatcherOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		before := watcher.Current()
		inPlace(t, path, fileOf("b"))
		g.Expect(watcher.Current()).To(BeIdenticalTo(before))
		g.Expect(namesOf(settled(watcher))).To(Equal([]string{"b"}))
		changes := 0
		go watcher.Run(t.Context(), before, func() { changes++ })
		synctest.Wait()
		g.Expect(changes).To(Equal(1), "changed since")
		inPlace(t, path, fileOf("c"))
		settled(watcher)
		synctest.Wait()
		g.Expect(changes).To(Equal(2))
	})
}

func TestWatcherOptions(t *testing.T) { synctest.Test(t, testWatcherOptions) }

func testWatcherOptions(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "providers.yaml")
	inPlace(t, path, fileOf("a"))
	var lines []string
	var accepted [][]string
	watcher, err := providerfile.NewWatcher(path, providerfile.WatcherOptions{
		Check: func(provider *providerfile.Provider) error {
			if provider.Name == "bad" {
				return errors.New("name: refused")
			}
			provider.ExecConfig.Args = []string{"added"}
			return nil
		},
		Accepted: func(file *providerfile.File) { accepted = append(accepted, namesOf(file)) },
		Logger:   funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(watcher.File().Providers[0].ExecConfig.Args).To(Equal([]string{"added"}))
	inPlace(t, path, fileOf("a", "bad"))
	for range 3 {
		g.Expect(namesOf(settled(watcher))).To(Equal([]string{"a"}), "the previous version is kept")
	}
	g.Expect(lines).To(ConsistOf(And(
		ContainSubstring("Invalid provider file, keeping the previous version"),
		ContainSubstring(`providers[1] (\"bad\"): name: refused`),
	)))
	inPlace(t, path, fileOf("b"))
	g.Expect(namesOf(settled(watcher))).To(Equal([]string{"b"}))
	g.Expect(accepted).To(Equal([][]string{{"a"}, {"b"}}))
	g.Expect(lines).To(HaveLen(2))

	inPlace(t, path, fileOf("bad"))
	_, err = providerfile.NewWatcher(path, providerfile.WatcherOptions{Check: func(*providerfile.Provider) error {
		return errors.New("refused")
	}})
	g.Expect(err).To(MatchError("provider file " + path + `: providers[0] ("bad"): refused`))
	_, err = providerfile.NewWatcher("/does/not/exist", providerfile.WatcherOptions{})
	g.Expect(err).To(MatchError(os.ErrNotExist))
}

func TestWatcherConcurrently(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "providers.yaml")
	replaced(t, path, fileOf("a"))
	var last []string
	watcher, err := providerfile.NewWatcher(path, providerfile.WatcherOptions{
		Accepted: func(file *providerfile.File) { last = namesOf(file) },
	})
	g.Expect(err).NotTo(HaveOccurred())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				g.Expect(watcher.File().Providers).To(HaveLen(1))
			}
		})
	}
	for _, name := range []string{"b", "c", "d", "e"} {
		replaced(t, path, fileOf(name))
	}
	group.Wait()
	g.Eventually(func() []string { return namesOf(watcher.File()) }).WithTimeout(time.Minute).Should(Equal([]string{"e"}))
	g.Expect(last).To(Equal([]string{"e"}))
}
