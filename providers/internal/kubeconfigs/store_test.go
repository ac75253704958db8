// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfigs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/internal/kubeconfigs"
)

// sink records the last profile and the calls.
type sink struct {
	profile *inventory.Profile
	calls   []string
}

func (s *sink) Put(profile *inventory.Profile) { s.profile, s.calls = profile, append(s.calls, "put") }
func (s *sink) Remove(inventory.Key)           { s.calls = append(s.calls, "remove") }
func (s *sink) Synced()                        {}

func (s *sink) recheck(inventory.Key) { s.calls = append(s.calls, "recheck") }

// take returns the calls since the last one.
func (s *sink) take() string {
	calls := strings.Join(s.calls, " ")
	s.calls = nil
	return calls
}

func newStore(t *testing.T) *kubeconfigs.Store {
	t.Helper()
	resolver, err := kubeconfig.New(kubeconfig.Options{Trusted: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(resolver.Close)
	return kubeconfigs.NewStore(resolver)
}

// found returns a cluster with this content in a kubeconfig.
func found(cluster, user string) kubeconfigs.Cluster {
	c := kubeconfigs.Cluster{
		Profile:        inventory.Synthetic{ClusterName: "a+b", Manager: "test", Namespace: "default", Name: inventory.ProfileName("a+b")},
		AccessProvider: "test", Reference: map[string]string{"file": "a"},
	}
	parsed, err := kubeconfig.Parse("file a", "/dir", []byte(fmt.Sprintf(
		"contexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]", cluster, user)))
	if err == nil {
		c.Context, err = parsed.Context("x")
	}
	c.Err = err
	return c
}

func noFile(path string) ([]byte, error) { return nil, errors.New(path + " is missing") }

func TestStore(t *testing.T) {
	g := NewWithT(t)
	store, s := newStore(t), &sink{}
	put := func(cluster, user string, read kubeconfig.ReadFile) string {
		g.Expect(store.Put(s, found(cluster, user), read, s.recheck)).To(Succeed())
		return s.take()
	}
	resolve := func() string {
		access, err := store.Resolve(t.Context(), s.profile)
		if err != nil {
			return err.Error()
		}
		defer access.Release()
		return access.Server() + " " + access.RESTConfig().BearerToken
	}
	content := func(text string) kubeconfig.ReadFile {
		return func(string) ([]byte, error) { return []byte(text), nil }
	}
	joined := func() string {
		return meta.FindStatusCondition(s.profile.Status.Conditions, inventory.ConditionJoined).Reason
	}

	g.Expect(put("", "", noFile)).To(Equal("put"))
	g.Expect(resolve()).To(Equal(`file a: context "x": cluster "c": server: must be set`))
	g.Expect(joined()).To(Equal("KubeconfigInvalid"))
	g.Expect(put("server: https://a", "token: one", noFile)).To(Equal("put recheck"))
	g.Expect(resolve()).To(Equal("https://a one"))
	g.Expect(joined()).To(Equal("KubeconfigFound"))
	first := s.profile
	g.Expect(put("server: https://a", "token: one", noFile)).To(Equal("put"), "nothing has changed")
	g.Expect(s.profile).To(Equal(first), "times stay the same")
	g.Expect(put("server: https://a", "token: two", noFile)).To(Equal("put recheck"))
	g.Expect(s.profile).To(Equal(first), "the profile has no credential")

	g.Expect(put("server: https://a", "tokenFile: t", noFile)).To(Equal("put recheck"))
	g.Expect(resolve()).To(Equal(`file a: context "x": user "u": tokenFile: /dir/t is missing`))
	g.Expect(s.profile).To(Equal(first), "the last one that was valid")
	g.Expect(put("server: https://a", "tokenFile: t", noFile)).To(Equal("put"))
	g.Expect(put("server: https://a", "tokenFile: t", content("three"))).To(Equal("put recheck"))
	g.Expect(resolve()).To(Equal("https://a three"), "without reading the file again")
	g.Expect(put("server: https://a", "tokenFile: t", content("four"))).To(Equal("put recheck"))
	g.Expect(put("server: https://b", "token: one", noFile)).To(Equal("put recheck"))
	g.Expect(inventory.Fingerprint(s.profile)).NotTo(Equal(inventory.Fingerprint(first)))

	same := found("server: https://b", "tokenFile: t")
	for _, step := range []struct{ content, want string }{{"five", "put recheck"}, {"five", ""}, {"six", "put recheck"}, {"six", ""}} {
		g.Expect(store.Put(s, same, content(step.content), s.recheck)).To(Succeed())
		g.Expect(s.take()).To(Equal(step.want), step.content)
	}
	g.Expect(store.Put(s, same, noFile, s.recheck)).To(Succeed())
	g.Expect(s.take()).To(Equal("put recheck"), "the file is gone")

	store.Remove(s, inventory.KeyOf(s.profile))
	g.Expect(s.take()).To(Equal("remove"))
	g.Expect(resolve()).To(ContainSubstring("was removed"))
	g.Expect(store.Keys()).To(BeEmpty())
}

// The profiles are valid in v1alpha1, and by the stricter rules of v1alpha2.
func TestProfilesAreValid(t *testing.T) {
	for _, cluster := range []string{
		"", "server: https://a", "server: https://a:6443/k8s/clusters/c-1", "server: 10.0.0.1:6443", "server: localhost",
		`server: "https://[::1]:6443"`, "server: http://localhost:8080", `server: "https://a?b=c#d"`,
		"server: https://" + strings.Repeat("a", 3000), "server: https://", "server: /a", "server: unix:///a",
		"server: https://a, proxy-url: socks5://u:s3cr3t@b", "server: https://a, proxy-url: socks5h://b", "server: https://a, proxy-url: b",
		"server: https://a, tls-server-name: " + strings.Repeat("a", 300), "server: https://a, tls-server-name: b",
		"server: https://a, insecure-skip-tls-verify: true", "server: https://u:s3cr3t@a",
		`server: https://a, extensions: [{name: x, extension: s3cr3t}, {name: client.authentication.k8s.io/exec, extension: {a: s3cr3t}}]`,
	} {
		t.Run(cluster[:min(len(cluster), 60)], func(t *testing.T) {
			g := NewWithT(t)
			s := &sink{}
			g.Expect(newStore(t).Put(s, found(cluster, "token: s3cr3t"), noFile, s.recheck)).To(Succeed())
			g.Expect(inventory.Validate(s.profile)).To(Succeed())
			g.Expect(strict(s.profile)).To(BeEmpty())
			text, err := json.Marshal(s.profile)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(text)).NotTo(ContainSubstring("s3cr3t"))
		})
	}
}

// strict returns violations of the rules of v1alpha2.
func strict(profile *inventory.Profile) (faults []string) {
	check := func(ok bool, fault string) {
		if !ok {
			faults = append(faults, fault)
		}
	}
	manager := profile.Spec.ClusterManager.Name
	check(manager != "" && len(validation.IsValidLabelValue(manager)) == 0, "manager")
	check(len(profile.Status.CredentialProviders) == 0, "credentialProviders")
	check(len(profile.Status.AccessProviders) <= 64, "accessProviders")
	for _, p := range profile.Status.AccessProviders {
		check(p.Name != "" && len(p.Name) <= 253, "name")
		server, err := url.Parse(p.Cluster.Server)
		check(err == nil && server.IsAbs() && server.Host != "" && len(p.Cluster.Server) <= 2048, "server")
		proxy, err := url.Parse(p.Cluster.ProxyURL)
		check(p.Cluster.ProxyURL == "" || err == nil && slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) && proxy.Host != "", "proxy-url")
		check(len(p.Cluster.TLSServerName) <= 253 && p.Cluster.CertificateAuthority == "", "cluster")
		seen := map[string]bool{}
		for _, e := range p.Cluster.Extensions {
			check(!seen[e.Name], "extensions")
			seen[e.Name] = true
		}
	}
	for _, p := range profile.Status.Properties {
		check(p.Name != "" && p.Value != "", "properties")
	}
	check(profile.Labels[v1alpha1.LabelClusterManagerKey] == manager, "label")
	return faults
}
