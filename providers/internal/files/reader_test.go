// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/providers/internal/files"
)

func TestReaderWaitsForFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "file")
		touch := func(content string) { // with the time of the bubble
			write(t, path, content)
			do(t, os.Chtimes(path, time.Now(), time.Now()))
		}
		r := files.NewReader()
		paths := []string{path, path}
		g.Expect(r.Scan(paths)).To(BeFalse())
		_, err := r.Read(path)
		g.Expect(err).To(MatchError(fs.ErrNotExist))
		g.Expect(files.IsMissing(err)).To(BeTrue())

		for _, half := range []string{"a", "ab", "abc"} { // a slow writer
			touch(half)
			g.Expect(r.Scan(paths)).To(BeTrue())
			g.Expect(r.Pending(path)).To(BeTrue())
			time.Sleep(files.SettleTime - time.Millisecond)
			g.Expect(r.Scan(paths)).To(BeTrue())
			_, err = r.Read(path)
			g.Expect(err).To(MatchError(fs.ErrNotExist), half)
		}
		time.Sleep(time.Millisecond)
		g.Expect(r.Scan(paths)).To(BeFalse())
		g.Expect(r.Pending(path)).To(BeFalse())
		g.Expect(r.Read(path)).To(Equal([]byte("abc")))

		touch("abcd") // written twice
		g.Expect(r.Scan(paths)).To(BeTrue())
		time.Sleep(files.SettleTime - time.Millisecond)
		touch("abcd")
		time.Sleep(time.Millisecond)
		g.Expect(r.Scan(paths)).To(BeTrue())
		g.Expect(r.Read(path)).To(Equal([]byte("abc")))

		touch("ab") // and back, as an editor does
		g.Expect(r.Scan(paths)).To(BeTrue())
		touch("abc")
		g.Expect(r.Scan(paths)).To(BeFalse())

		do(t, os.Remove(path)) // and again
		g.Expect(r.Scan(paths)).To(BeTrue())
		g.Expect(r.Read(path)).To(Equal([]byte("abc")))
		time.Sleep(files.SettleTime)
		g.Expect(r.Scan(paths)).To(BeFalse())
		_, err = r.Read(path)
		g.Expect(err).To(MatchError(fs.ErrNotExist))

		g.Expect(r.Scan(nil)).To(BeFalse())
		touch("old")
		do(t, os.Chtimes(path, time.Now(), time.Now().Add(-time.Minute)))
		g.Expect(r.Scan(paths)).To(BeFalse(), "a file that is at rest is read at once")
		g.Expect(r.Read(path)).To(Equal([]byte("old")))
	})
}

func TestReaderRefusesOtherFiles(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	pipe, large := filepath.Join(dir, "pipe"), filepath.Join(dir, "large")
	do(t, syscall.Mkfifo(pipe, 0o600))
	write(t, large, "")
	do(t, os.Truncate(large, 9<<20))
	r := files.NewReader()
	r.Scan([]string{pipe, large, dir, filepath.Join(large, "below")}) // must not block
	for path, want := range map[string]string{pipe: "is not a file", dir: "is not a file", large: "is larger than"} {
		_, err := r.Read(path)
		g.Expect(err).To(MatchError(ContainSubstring(want)))
		g.Expect(files.IsMissing(err)).To(BeFalse())
	}
	_, err := r.Read(filepath.Join(large, "below"))
	g.Expect(files.IsMissing(err)).To(BeTrue())
}
