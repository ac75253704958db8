// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providerfile_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"

	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// restricted is a file of which a beginning is valid, without the restrictions.
const restricted = `providers:
- name: a
  execConfig:
    apiVersion: client.authentication.k8s.io/v1
    command: /x
  rollcall:
    allowedServers: ["*.example.com"]
    allowedProfileNamespaces: [team-a]
`

func isRestricted(file *providerfile.File) bool {
	extensions := file.Providers[0].Rollcall
	return len(extensions.AllowedServers) == 1 && len(extensions.AllowedProfileNamespaces) == 1
}

func TestHalfWrittenFileIsNotUsed(t *testing.T) {
	cuts := 0
	for cut := range len(restricted) {
		file, err := providerfile.Parse("x", []byte(restricted[:cut]))
		if err != nil || len(file.Providers) == 0 || isRestricted(file) {
			continue
		}
		cuts++
		synctest.Test(t, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "providers.yaml")
			inPlace(t, path, restricted)
			watcher, err := providerfile.NewWatcher(path, providerfile.WatcherOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go watcher.Run(ctx, watcher.Current(), func() { t.Error("changed") })
			for range 50 { // a slow writer, and one that writes again and again
				inPlace(t, path, restricted[:cut])
				g.Expect(isRestricted(watcher.File())).To(BeTrue())
				time.Sleep(390 * time.Millisecond)
				g.Expect(isRestricted(watcher.File())).To(BeTrue())
				inPlace(t, path, restricted)
				g.Expect(isRestricted(watcher.File())).To(BeTrue())
				time.Sleep(130 * time.Millisecond)
			}
		})
	}
	if cuts == 0 {
		t.Error("no beginning of the file is valid")
	}
}

func TestNewWatcherWaitsForFile(t *testing.T) {
	half, _, _ := strings.Cut(restricted, "  rollcall:")
	for _, test := range []struct {
		name     string
		previous bool // written long ago
		content  string
		then     string // written after 300 ms
		waits    time.Duration
	}{
		{"a file that is at rest", true, restricted, "", 0},
		{"a file that is complete", false, restricted, "", 400 * time.Millisecond},
		{"the half of a file", false, half, restricted, 800 * time.Millisecond},
		{"the half of a line", false, half[:len(half)-8], restricted, 800 * time.Millisecond},
		{"a file that is empty yet", false, "", restricted, 800 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				path := filepath.Join(t.TempDir(), "providers.yaml")
				inPlace(t, path, test.content)
				if test.previous {
					before := time.Now().Add(-time.Hour)
					g.Expect(os.Chtimes(path, before, before)).To(Succeed())
				}
				if test.then != "" {
					go func() {
						time.Sleep(300 * time.Millisecond)
						inPlace(t, path, test.then)
					}()
				}
				start := time.Now()
				watcher, err := providerfile.NewWatcher(path, providerfile.WatcherOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(isRestricted(watcher.Current())).To(BeTrue())
				g.Expect(time.Since(start)).To(Equal(test.waits))
			})
		})
	}
}

func TestNewWatcherGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "providers.yaml")
		inPlace(t, path, restricted)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			time.Sleep(50 * time.Millisecond)
			for content := restricted; ctx.Err() == nil; content += "# more\n" {
				inPlace(t, path, content)
				time.Sleep(100 * time.Millisecond)
			}
		}()
		_, err := providerfile.NewWatcher(path, providerfile.WatcherOptions{})
		cancel()
		time.Sleep(time.Second) // until the writer has ended
		g.Expect(err).To(MatchError("provider file: " + path + " keeps changing"))
	})
}

func TestChangesAreUsedInASecond(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(v *volume, content string)
	}{
		{"written in place", func(v *volume, content string) { inPlace(v.t, v.path(), content) }},
		{"replaced", func(v *volume, content string) { replaced(v.t, v.path(), content) }},
		{"a mounted ConfigMap", (*volume).set},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				v := &volume{t: t, dir: t.TempDir()}
				test.set(v, fileOf("a"))
				watcher, err := providerfile.NewWatcher(v.path(), providerfile.WatcherOptions{})
				g.Expect(err).NotTo(HaveOccurred())
				var changed time.Time
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go watcher.Run(ctx, watcher.Current(), func() { changed = time.Now() })
				time.Sleep(time.Millisecond)
				start := time.Now()
				test.set(v, fileOf("b"))
				time.Sleep(3 * time.Second)
				synctest.Wait()
				g.Expect(changed.Sub(start)).To(And(BeNumerically(">=", 400*time.Millisecond), BeNumerically("<=", time.Second)))
			})
		})
	}
}

func TestLooserRestrictionsAreLogged(t *testing.T) {
	half, _, _ := strings.Cut(restricted, "  rollcall:")
	without := func(line string) string { return strings.Replace(restricted, line, "", 1) }
	for _, test := range []struct {
		name, content string
		fields        string // of the log line, or "" for none
	}{
		{"without a restriction", without("    allowedProfileNamespaces: [team-a]\n"), `["rollcall.allowedProfileNamespaces"]`},
		{"without any", half, `["rollcall.allowedServers" "rollcall.allowedProfileNamespaces"]`},
		{"with another server", strings.Replace(restricted, `"]`, `", "*"]`, 1), `["rollcall.allowedServers"]`},
		{"with a proxy, which allowedServers had excluded", restricted + "    allowedProxies: [\"*\"]\n", `["rollcall.allowedProxies"]`},
		{"with a policy", restricted + "  profileSourcedCLIArgsPolicy: Append\n  profileSourcedEnvVarsPolicy: Replace\n",
			`["profileSourcedCLIArgsPolicy" "profileSourcedEnvVarsPolicy"]`},
		{"without TLS", restricted + "    allowPlainHTTP: true\n    allowInsecureSkipTLSVerify: true\n",
			`["rollcall.allowInsecureSkipTLSVerify" "rollcall.allowPlainHTTP"]`},
		{"with more restrictions", restricted + "    allowedClusterManagers: [x]\n    inheritedEnvVars: []\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				var lines []string
				path := filepath.Join(t.TempDir(), "providers.yaml")
				inPlace(t, path, restricted)
				watcher, err := providerfile.NewWatcher(path, providerfile.WatcherOptions{
					Logger: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}),
				})
				g.Expect(err).NotTo(HaveOccurred())
				inPlace(t, path, test.content)
				settled(watcher)
				g.Expect(lines[0]).To(ContainSubstring("Provider file changed"))
				if test.fields == "" {
					g.Expect(lines).To(HaveLen(1))
					return
				}
				g.Expect(lines).To(HaveLen(2))
				g.Expect(lines[1]).To(And(ContainSubstring(`"msg"="Provider file loosens restrictions"`),
					ContainSubstring(`"provider"="a"`), ContainSubstring(`"fields"=`+test.fields)))
			})
		})
	}
}
