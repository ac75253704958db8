// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

func TestProfileBindings(t *testing.T) {
	for _, test := range []struct {
		name string
		rule providerfile.Extensions
		text string // of the error
	}{
		{"no rule", providerfile.Extensions{}, ""},
		{"the namespace", providerfile.Extensions{AllowedProfileNamespaces: []string{"other", "fleet"}}, ""},
		{"a pattern of namespaces", providerfile.Extensions{AllowedProfileNamespaces: []string{"fl*"}}, ""},
		{"another namespace", providerfile.Extensions{AllowedProfileNamespaces: []string{"fleet-b", "lee"}},
			`profile fleet/c1: provider "fake": denied: the profile's namespace "fleet" is not among the provider's allowedProfileNamespaces`},
		{"the manager", providerfile.Extensions{AllowedClusterManagers: []string{"manager-a"}}, ""},
		{"another manager", providerfile.Extensions{AllowedClusterManagers: []string{"manager-b"}},
			`profile fleet/c1: provider "fake": denied: the profile's cluster manager "manager-a" is not among the provider's allowedClusterManagers`},
		{"only one of both", providerfile.Extensions{AllowedProfileNamespaces: []string{"fleet"}, AllowedClusterManagers: []string{"x"}}, "allowedClusterManagers"},
		{"another server", providerfile.Extensions{AllowedServers: []string{"c2"}},
			`profile fleet/c1: provider "fake": denied: server c1:443 is not among the provider's allowedServers`},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			bound, next := plain("fake"), plain("next")
			bound.Rollcall = test.rule
			resolver := newResolver(t, credentials.Options{Providers: []providerfile.Provider{bound, next}})
			profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})
			profile.Spec.ClusterManager.Name = "manager-a"
			profile.Status.AccessProviders = append(profile.Status.AccessProviders,
				inventory.AccessProvider{Name: "next", Cluster: clientcmdv1.Cluster{Server: "https://c1"}})
			access, err := resolver.Resolve(t.Context(), profile)
			if test.text == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(access.Provider()).To(Equal("fake"))
				return
			}
			g.Expect(err).To(MatchError(credentials.ErrDenied), "the next provider is not used")
			g.Expect(err).To(MatchError(ContainSubstring(test.text)))
		})
	}
}

// TestReloadAddsBinding has a file with a binding written in two parts.
func TestReloadAddsBinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		path := filepath.Join(t.TempDir(), "providers.yaml")
		inPlace(t, path, fileOf())
		resolver := newResolver(t, credentials.Options{ProviderFile: path})
		profile := profileOf("c1", clientcmdv1.Cluster{Server: "https://c1"})
		changes := 0
		resolver.NotifyChange(t.Context(), func() { changes++ })
		resolve(t, resolver, profile)

		bound := fileOf() + "  rollcall: {allowedProfileNamespaces: [fleet-b]}\n"
		inPlace(t, path, bound)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		g.Expect(changes).To(Equal(1), "clusters are resolved again")
		_, err := resolver.Resolve(t.Context(), profile)
		g.Expect(err).To(MatchError(credentials.ErrDenied))

		inPlace(t, path, fileOf()) // the first part of the file
		time.Sleep(300 * time.Millisecond)
		_, err = resolver.Resolve(t.Context(), profile)
		g.Expect(err).To(MatchError(credentials.ErrDenied))
		inPlace(t, path, bound)
		time.Sleep(2 * time.Second)
		_, err = resolver.Resolve(t.Context(), profile)
		g.Expect(err).To(MatchError(credentials.ErrDenied))
		g.Expect(changes).To(Equal(1))
		resolver.Close()
	})
}
