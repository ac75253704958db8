// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package filecache_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/filecache"
)

// issuer issues tokens that are valid for an hour, and counts them.
type issuer struct {
	mu     sync.Mutex
	issued int
}

func (i *issuer) obtain(context.Context) (*plugin.Credential, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.issued++
	return &plugin.Credential{Token: fmt.Sprintf("t%d", i.issued), Expiry: time.Now().Add(time.Hour)}, nil
}

// token returns the token for the key.
func token(t *testing.T, cache *filecache.Cache, key any, i *issuer) string {
	t.Helper()
	credential, err := cache.Get(t.Context(), key, i.obtain)
	if err != nil {
		t.Fatal(err)
	}
	return credential.Token
}

// files returns the names in the folder that match.
func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestOffByDefault(t *testing.T) {
	g := NewWithT(t)
	var cache filecache.Cache
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	cache.AddFlags(flags)
	g.Expect(flags.Parse(nil)).To(Succeed())
	var i issuer
	g.Expect(token(t, &cache, "k", &i)).To(Equal("t1"))
	g.Expect(token(t, &cache, "k", &i)).To(Equal("t2"))

	g.Expect(flags.Parse([]string{"--cache-dir=" + t.TempDir()})).To(Succeed())
	g.Expect(token(t, &cache, "k", &i)).To(Equal("t3"))
	g.Expect(token(t, &cache, "k", &i)).To(Equal("t3"))
}

func TestKeys(t *testing.T) {
	g := NewWithT(t)
	cache := &filecache.Cache{Dir: t.TempDir()}
	var i issuer
	type key struct{ Account, Scopes string }
	g.Expect(token(t, cache, key{"a", "bc"}, &i)).To(Equal("t1"))
	g.Expect(token(t, cache, key{"ab", "c"}, &i)).To(Equal("t2"))
	g.Expect(token(t, cache, key{"a", "bc"}, &i)).To(Equal("t1"))
	g.Expect(token(t, cache, key{"ab", "c"}, &i)).To(Equal("t2"))

	_, err := cache.Get(t.Context(), func() {}, i.obtain)
	g.Expect(err).To(MatchError(ContainSubstring("cache: key: ")))
}

func TestAllFieldsAreStored(t *testing.T) {
	g := NewWithT(t)
	cache := &filecache.Cache{Dir: t.TempDir()}
	want := plugin.Credential{
		Token: "t", ClientCertificate: []byte("cert"), ClientKey: []byte("key"),
		Expiry: time.Now().Add(time.Hour).UTC().Round(0),
	}
	for n := range 2 {
		got, err := cache.Get(t.Context(), "k", func(context.Context) (*plugin.Credential, error) {
			if n > 0 {
				t.Error("it was not stored")
			}
			c := want
			return &c, nil
		})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(reflect.DeepEqual(*got, want)).To(BeTrue())
	}
}

func TestCredentialIsReplacedEarly(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cache := &filecache.Cache{Dir: dir}
		var i issuer
		g.Expect(token(t, cache, "k", &i)).To(Equal("t1"))
		time.Sleep(38 * time.Minute)
		g.Expect(token(t, cache, "k", &i)).To(Equal("t1"))
		// Rollcall requests the next one after 72 % of the lifetime at the earliest.
		time.Sleep(5 * time.Minute)
		g.Expect(token(t, cache, "k", &i)).To(Equal("t2"))
		g.Expect(token(t, cache, "k", &i)).To(Equal("t2"))
	})
}

func TestNotStored(t *testing.T) {
	for name, test := range map[string]struct {
		credential *plugin.Credential
		err        error
	}{
		"an error":                          {err: errors.New("no")},
		"a credential without an expiry":    {credential: &plugin.Credential{Token: "t"}},
		"an expired credential":             {credential: &plugin.Credential{Token: "t", Expiry: time.Now().Add(-time.Minute)}},
		"neither a credential nor an error": {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cache := &filecache.Cache{Dir: t.TempDir()}
			for n := range 2 {
				obtained := false
				credential, err := cache.Get(t.Context(), "k", func(context.Context) (*plugin.Credential, error) {
					obtained = true
					return test.credential, test.err
				})
				g.Expect(obtained).To(BeTrue(), "run %d", n)
				if test.err == nil {
					g.Expect(err).NotTo(HaveOccurred())
				} else {
					g.Expect(err).To(MatchError(test.err))
				}
				g.Expect(credential == test.credential).To(BeTrue())
			}
		})
	}
}

func TestPermissions(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "a", "b")
	var i issuer
	token(t, &filecache.Cache{Dir: dir}, "k", &i)
	for _, name := range append(files(t, dir, "*"), dir) {
		info, err := os.Stat(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()&0o077).To(BeZero(), name)
	}
	g.Expect(files(t, dir, ".new-*")).To(BeEmpty())
}

func TestUnusableFolders(t *testing.T) {
	base := t.TempDir()
	file, open := filepath.Join(base, "file"), filepath.Join(base, "open")
	for _, err := range []error{
		os.WriteFile(file, nil, 0o600), os.Mkdir(open, 0o700), os.Chmod(open, 0o770),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct{ dir, err string }{
		"writable for other users": {open, "other users own it or have permissions on it"},
		"a file":                   {file, "not a directory"},
		"a relative path":          {"cache", "must be an absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := (&filecache.Cache{Dir: test.dir}).Get(t.Context(), "k", (&issuer{}).obtain)
			g.Expect(err).To(MatchError(And(HavePrefix("cache: "), ContainSubstring(test.err))))
		})
	}
}

func TestUntrustedFiles(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"readable for other users": func(path string) error { return os.Chmod(path, 0o644) },
		"damaged":                  func(path string) error { return os.WriteFile(path, []byte(`{"token":`), 0o600) },
		"empty":                    func(path string) error { return os.Truncate(path, 0) },
		"without a token": func(path string) error {
			return os.WriteFile(path, fmt.Appendf(nil, `{"obtained":%q,"expiry":"2999-01-01T00:00:00Z"}`,
				time.Now().Add(-time.Minute).Format(time.RFC3339)), 0o600)
		},
		"obtained in the future": func(path string) error {
			return os.WriteFile(path, []byte(`{"token":"t9","obtained":"2998-01-01T00:00:00Z","expiry":"2999-01-01T00:00:00Z"}`), 0o600)
		},
		"a symbolic link": func(path string) error {
			if err := os.Rename(path, path+".target"); err != nil {
				return err
			}
			return os.Symlink(path+".target", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cache := &filecache.Cache{Dir: t.TempDir()}
			var i issuer
			g.Expect(token(t, cache, "k", &i)).To(Equal("t1"))
			g.Expect(spoil(files(t, cache.Dir, "*.json")[0])).To(Succeed())
			g.Expect(token(t, cache, "k", &i)).To(Equal("t2"))
			g.Expect(token(t, cache, "k", &i)).To(Equal("t2"), "it was replaced")
		})
	}
}

func TestFullDisk(t *testing.T) {
	g := NewWithT(t)
	cache := &filecache.Cache{Dir: t.TempDir()}
	var i issuer
	token(t, cache, "k", &i)
	// A folder with the file's name can be neither read nor replaced.
	path := files(t, cache.Dir, "*.json")[0]
	g.Expect(os.Remove(path)).To(Succeed())
	g.Expect(os.MkdirAll(filepath.Join(path, "x"), 0o700)).To(Succeed())
	g.Expect(token(t, cache, "k", &i)).To(Equal("t2"))
	g.Expect(files(t, cache.Dir, ".new-*")).To(BeEmpty())
}

func TestExpiredFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		cache := &filecache.Cache{Dir: dir}
		var i issuer
		for n := range 10 {
			token(t, cache, n, &i)
		}
		g.Expect(files(t, dir, "*")).To(HaveLen(20), "credentials and locks")
		left := filepath.Join(dir, ".new-1")
		g.Expect(os.WriteFile(left, []byte("x"), 0o600)).To(Succeed())
		g.Expect(os.Chtimes(left, time.Time{}, time.Now())).To(Succeed())
		time.Sleep(30 * time.Minute)
		token(t, cache, "half an hour younger", &i)
		g.Expect(files(t, dir, "*")).To(HaveLen(22), "nothing has expired")
		g.Expect(files(t, dir, ".new-*")).To(BeEmpty())
		time.Sleep(31 * time.Minute)
		token(t, cache, "new", &i)
		g.Expect(files(t, dir, "*")).To(HaveLen(4), "the two young ones are left")
	})
}

func TestWaitEndsWithTheContext(t *testing.T) {
	g := NewWithT(t)
	cache := &filecache.Cache{Dir: t.TempDir()}
	busy, done := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		_, _ = cache.Get(t.Context(), "k", func(context.Context) (*plugin.Credential, error) {
			close(busy)
			<-ctx.Done()
			return nil, errors.New("never")
		})
	}()
	<-busy
	waiting, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err := cache.Get(waiting, "k", (&issuer{}).obtain)
	g.Expect(err).To(MatchError(context.DeadlineExceeded))

	other, err := cache.Get(t.Context(), "other", (&issuer{}).obtain)
	g.Expect(err).NotTo(HaveOccurred(), "other keys do not wait")
	g.Expect(other.Token).To(Equal("t1"))
	cancel()
	<-done
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"token":"t9","obtained":"2001-01-01T00:00:00Z","expiry":"2999-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"clientKey":"eA==","obtained":5}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, content []byte) {
		cache := &filecache.Cache{Dir: t.TempDir()}
		var i issuer
		token(t, cache, "k", &i)
		if err := os.WriteFile(files(t, cache.Dir, "*.json")[0], content, 0o600); err != nil {
			t.Fatal(err)
		}
		credential, err := cache.Get(t.Context(), "k", i.obtain)
		if err != nil {
			t.Fatal(err)
		}
		if !credential.Expiry.After(time.Now()) {
			t.Errorf("a credential that expired at %s", credential.Expiry)
		}
	})
}
