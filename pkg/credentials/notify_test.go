// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
)

// fileOf returns the content of a provider file with the provider "fake", and
// others besides.
func fileOf(others ...string) string {
	content := "providers:\n"
	for _, name := range append([]string{"fake"}, others...) {
		content += "- name: " + name + "\n  execConfig: {apiVersion: client.authentication.k8s.io/v1, command: /x}\n"
	}
	return content
}

// volume is a folder as the kubelet mounts a ConfigMap.
type volume struct {
	t   *testing.T
	dir string
	n   int
}

func (v *volume) path() string { return filepath.Join(v.dir, "providers.yaml") }

// set makes "..data", through which the file is reached, lead to a new folder.
func (v *volume) set(content string) {
	v.t.Helper()
	v.n++
	folder := filepath.Join(v.dir, "..version-"+string(rune('a'+v.n)))
	link := filepath.Join(v.dir, "..data")
	for _, err := range []error{
		os.Mkdir(folder, 0o700),
		os.WriteFile(filepath.Join(folder, "providers.yaml"), []byte(content), 0o600),
		os.Symlink(filepath.Base(folder), link+"_tmp"),
		os.Rename(link+"_tmp", link),
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

// inPlace writes as an editor without a temporary file does.
func inPlace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replaced writes as an editor with a temporary file does.
func replaced(t *testing.T, path, content string) {
	t.Helper()
	inPlace(t, path+"~", content)
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func TestChangesOfTheFileAreTold(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(v *volume, content string)
	}{
		{"when it is written in place", func(v *volume, content string) { inPlace(v.t, v.path(), content) }},
		{"when it is replaced", func(v *volume, content string) { replaced(v.t, v.path(), content) }},
		{"when it is removed and written", func(v *volume, content string) {
			if v.n++; v.n > 1 {
				if err := os.Remove(v.path()); err != nil {
					v.t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
			}
			inPlace(v.t, v.path(), content)
		}},
		{"when the ConfigMap that is mounted changes", (*volume).set},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				v := &volume{t: t, dir: t.TempDir()}
				test.set(v, fileOf())
				resolver := newResolver(t, credentials.Options{ProviderFile: v.path()})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				told := 0
				resolver.NotifyChange(ctx, func() { told++ })
				told2 := 0
				resolver.NotifyChange(t.Context(), func() { told2++ })
				settle := func() { time.Sleep(3 * time.Second); synctest.Wait() }

				settle()
				g.Expect(told).To(BeZero(), "nothing has changed")
				test.set(v, fileOf("other"))
				settle()
				g.Expect(told).To(Equal(1))
				test.set(v, fileOf("other")+"# a remark\n")
				settle()
				g.Expect(told).To(Equal(1), "it says the same")
				test.set(v, "providers: [{}]")
				settle()
				g.Expect(told).To(Equal(1), "what cannot be used is not in force")
				_, err := resolver.Resolve(t.Context(), profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"}))
				g.Expect(err).NotTo(HaveOccurred())
				test.set(v, fileOf("third"))
				settle()
				g.Expect(told).To(Equal(2))

				cancel()
				settle()
				test.set(v, fileOf())
				settle()
				g.Expect(told).To(Equal(2), "not after the context has ended")
				g.Expect(told2).To(Equal(3))
				resolver.Close() // and its goroutines are gone, or the bubble would not end
			})
		})
	}
}

func TestAChangeThatResolveFindsIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "providers.yaml")
		inPlace(t, path, fileOf())
		resolver := newResolver(t, credentials.Options{ProviderFile: path})
		told := 0
		resolver.NotifyChange(t.Context(), func() { told++ })
		synctest.Wait()
		inPlace(t, path, fileOf("other"))
		start := time.Now()
		_, err := resolver.Resolve(t.Context(), profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"}))
		g.Expect(err).NotTo(HaveOccurred())
		synctest.Wait()
		g.Expect(told).To(Equal(1))
		g.Expect(time.Since(start)).To(BeZero())
		resolver.Close()
	})
}

func TestNotifyChangeOnceClosedOrWithoutAFileDoesNothing(t *testing.T) {
	g := NewWithT(t)
	unexpected := func() { t.Error("there is no change") }
	newResolver(t, credentials.Options{}).NotifyChange(t.Context(), unexpected)
	path := filepath.Join(t.TempDir(), "providers.yaml")
	g.Expect(os.WriteFile(path, []byte(fileOf()), 0o600)).To(Succeed())
	resolver := newResolver(t, credentials.Options{ProviderFile: path})
	resolver.Close()
	resolver.NotifyChange(t.Context(), unexpected)
}

func TestFileAndResolversConcurrently(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "providers.yaml")
	replaced(t, path, fileOf())
	resolver := newResolver(t, credentials.Options{ProviderFile: path})
	profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})
	var group sync.WaitGroup
	for range 4 {
		resolver.NotifyChange(t.Context(), func() {
			_, err := resolver.Resolve(t.Context(), profile)
			g.Expect(err).To(Or(BeNil(), MatchError(credentials.ErrClosed)))
		})
		group.Go(func() {
			for range 50 {
				_, err := resolver.Resolve(t.Context(), profile)
				g.Expect(err).NotTo(HaveOccurred(), "no half of a file is ever seen")
			}
		})
	}
	for _, other := range []string{"a", "b", "c", "d", "e", "f"} {
		replaced(t, path, fileOf(other))
	}
	group.Wait()
	resolver.Close()
}
