// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

func TestVerifiedFileIsRun(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "plugin")
	// Both end at once, one well and one not.
	install := func(program string) (digest string) {
		found, err := exec.LookPath(program)
		g.Expect(err).NotTo(HaveOccurred())
		content, err := os.ReadFile(found)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(path+"~", content, 0o700)).To(Succeed())
		g.Expect(os.Rename(path+"~", path)).To(Succeed())
		sum := sha256.Sum256(content)
		return hex.EncodeToString(sum[:])
	}
	digest := install("true")
	file, err := (&digests{}).openVerified(path, []string{digest})
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	install("false")

	command := exec.CommandContext(t.Context(), path)
	pin(command, file)
	g.Expect(command.Run()).To(Succeed())
	g.Expect(command.Args[0]).To(Equal(path), "the plugin gets its own name")
	g.Expect(exec.CommandContext(t.Context(), path).Run()).NotTo(Succeed())

	_, err = (&digests{}).openVerified(path, []string{digest})
	g.Expect(err).To(MatchError(errdefs.ErrDenied))
}

func TestDigestIsReadOncePerChange(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "plugin")
	var d digests
	of := func(now time.Time) string {
		file, err := os.Open(path)
		g.Expect(err).NotTo(HaveOccurred())
		defer file.Close()
		digest, err := d.of(path, file, now)
		g.Expect(err).NotTo(HaveOccurred())
		return digest
	}
	digest := func(content string) string {
		sum := sha256.Sum256([]byte(content))
		return hex.EncodeToString(sum[:])
	}
	later := time.Now().Add(time.Hour)
	write := func(path, content string) { g.Expect(os.WriteFile(path, []byte(content), 0o700)).To(Succeed()) }

	write(path, "one")
	g.Expect(of(time.Now())).To(Equal(digest("one")))
	g.Expect(d.known).To(BeEmpty(), "another change at this moment might not be noticed")
	for name, change := range map[string]func(content string){
		"in place": func(content string) { write(path, content) },
		"in place, with the old time": func(content string) {
			info, err := os.Stat(path)
			g.Expect(err).NotTo(HaveOccurred())
			write(path, content)
			g.Expect(os.Chtimes(path, time.Time{}, info.ModTime())).To(Succeed())
		},
		"by another file": func(content string) {
			write(path+"~", content)
			g.Expect(os.Rename(path+"~", path)).To(Succeed())
		},
	} {
		d.known = nil
		change("two")
		g.Expect(of(later)).To(Equal(digest("two")), name)
		d.known[path] = knownDigest{of: d.known[path].of, sha256: "remembered"}
		g.Expect(of(later)).To(Equal("remembered"), name)
		// The clock of the file system may be coarse.
		stamp := d.known[path].of.changed
		g.Eventually(func() bool {
			change("six")
			file, err := os.Open(path)
			g.Expect(err).NotTo(HaveOccurred())
			defer file.Close()
			id, _, _ := identify(file)
			return id.changed != stamp
		}).Should(BeTrue())
		g.Expect(of(later)).To(Equal(digest("six")), name)
	}
}

// BenchmarkDigest is a run's share of the digest of a plugin with 77 MB.
func BenchmarkDigest(b *testing.B) {
	path := filepath.Join(b.TempDir(), "plugin")
	if err := os.WriteFile(path, make([]byte, 77<<20), 0o700); err != nil {
		b.Fatal(err)
	}
	for name, now := range map[string]time.Time{"read": {}, "remembered": time.Now().Add(time.Hour)} {
		b.Run(name, func(b *testing.B) {
			var d digests
			for b.Loop() {
				file, err := os.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := d.of(path, file, now); err != nil {
					b.Fatal(err)
				}
				_ = file.Close()
			}
		})
	}
}
