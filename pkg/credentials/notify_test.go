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

// fileOf returns the content of a provider file with the provider "fake" and
// others.
func fileOf(others ...string) string {
	content := "providers:\n"
	for _, name := range append([]string{"fake"}, others...) {
		content += "- name: " + name + "\n  execConfig: {apiVersion: client.authentication.k8s.io/v1, command: /x}\n"
	}
	return content
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

// settle resolves profiles for longer than a changed provider file takes to be in
// force.
func settle(t testing.TB, resolver *credentials.Resolver) {
	t.Helper()
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		_, _ = resolver.Resolve(t.Context(), profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"}))
	}
}

func TestNotifyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "providers.yaml")
		inPlace(t, path, fileOf())
		resolver := newResolver(t, credentials.Options{ProviderFile: path})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		changes, others := 0, 0
		resolver.NotifyChange(ctx, func() { changes++ })
		resolver.NotifyChange(t.Context(), func() { others++ })
		settle := func() { time.Sleep(3 * time.Second); synctest.Wait() }

		inPlace(t, path, fileOf("other"))
		settle()
		g.Expect(changes).To(Equal(1))
		cancel()
		settle()
		inPlace(t, path, fileOf())
		settle()
		g.Expect(changes).To(Equal(1), "not after the context has ended")
		g.Expect(others).To(Equal(2))
		resolver.Close() // otherwise the goroutine would keep the bubble from ending
	})
}

func TestNotifyChangeOnResolve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "providers.yaml")
		inPlace(t, path, fileOf())
		resolver := newResolver(t, credentials.Options{ProviderFile: path})
		changes := 0
		resolver.NotifyChange(t.Context(), func() { changes++ })
		synctest.Wait()
		inPlace(t, path, fileOf("other"))
		resolves := func() {
			_, err := resolver.Resolve(t.Context(), profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"}))
			g.Expect(err).NotTo(HaveOccurred())
			synctest.Wait()
		}
		resolves()
		time.Sleep(399 * time.Millisecond)
		resolves()
		g.Expect(changes).To(BeZero(), "it may not be complete")
		time.Sleep(time.Millisecond)
		resolves()
		g.Expect(changes).To(Equal(1))
		resolver.Close()
	})
}

func TestNotifyChangeWithoutFile(t *testing.T) {
	g := NewWithT(t)
	unexpected := func() { t.Error("there is no change") }
	newResolver(t, credentials.Options{}).NotifyChange(t.Context(), unexpected)
	path := filepath.Join(t.TempDir(), "providers.yaml")
	g.Expect(os.WriteFile(path, []byte(fileOf()), 0o600)).To(Succeed())
	resolver := newResolver(t, credentials.Options{ProviderFile: path})
	resolver.Close()
	resolver.NotifyChange(t.Context(), unexpected)
}

func TestNotifyChangeConcurrently(t *testing.T) {
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
				g.Expect(err).NotTo(HaveOccurred(), "no part of a file is used")
			}
		})
	}
	for _, other := range []string{"a", "b", "c", "d", "e", "f"} {
		replaced(t, path, fileOf(other))
	}
	group.Wait()
	resolver.Close()
}
