// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/hub"
	"github.com/rollcall-dev/rollcall/pkg/inventory/lint"
)

// The linter rejects what an API server rejects in v1alpha2, and nothing else.
func TestLintMatchesV1alpha2(t *testing.T) {
	h := newVersionedHub(t)
	cluster := func(change func(*clientcmdv1.Cluster)) func(*inventory.Profile) {
		return func(p *inventory.Profile) { change(&p.Status.AccessProviders[0].Cluster) }
	}
	server := func(url string) func(*inventory.Profile) {
		return cluster(func(c *clientcmdv1.Cluster) { c.Server = url })
	}
	proxy := func(url string) func(*inventory.Profile) {
		return cluster(func(c *clientcmdv1.Cluster) { c.ProxyURL = url })
	}
	manager := func(name string) func(*inventory.Profile) {
		return func(p *inventory.Profile) { p.Spec.ClusterManager.Name = name }
	}
	properties := func(properties ...v1alpha1.Property) func(*inventory.Profile) {
		return func(p *inventory.Profile) { p.Status.Properties = properties }
	}
	providers := func(names ...string) func(*inventory.Profile) {
		return func(p *inventory.Profile) {
			p.Status.AccessProviders = nil
			for _, name := range names {
				p.Status.AccessProviders = append(p.Status.AccessProviders, inventory.AccessProvider{Name: name, Cluster: clientcmdv1.Cluster{Server: "https://a"}})
			}
		}
	}
	extensions := func(named ...string) func(*inventory.Profile) {
		return cluster(func(c *clientcmdv1.Cluster) {
			for i := 0; i < len(named); i += 2 {
				c.Extensions = append(c.Extensions, clientcmdv1.NamedExtension{Name: named[i], Extension: runtime.RawExtension{Raw: []byte(named[i+1])}})
			}
		})
	}
	numbers := func(n int) (names []string) {
		for i := range n {
			names = append(names, strconv.Itoa(i))
		}
		return names
	}
	long := strings.Repeat("ä", 1024)
	for _, tc := range []struct {
		name   string
		change func(*inventory.Profile)
		valid  bool
	}{
		{"a simple profile", func(*inventory.Profile) {}, true},
		{"a server with port and path", server("https://a.example.com:6443/k8s/clusters/c1"), true},
		{"a server with an address", server("https://[fd00::1]:6443"), true},
		{"a server of another scheme", server("ftp://a"), true},
		{"a server with user information", server("https://u:p@a"), true},
		{"a server with a fragment", server("https://a#b"), false},
		{"a server with a fragment after a path", server("https://a/b#c"), true},
		{"a server without a scheme", server("a.example.com:6443"), false},
		{"a server without scheme and port", server("a.example.com"), false},
		{"a server that is a path", server("/api"), false},
		{"a server without a host", server("https:///api"), false},
		{"a server with only a port", server("https://:6443"), false},
		{"a server with a space", server("https://a b"), false},
		{"a server with a space before", server(" https://a"), false},
		{"a server with a wrong port", server("https://a:port"), false},
		{"an empty server", server(""), false},
		{"a server of 2048 characters", server("https://a/" + strings.Repeat("a", 2038)), true},
		{"a server of 2049 characters", server("https://a/" + strings.Repeat("a", 2039)), false},
		{"a server of 2048 wide characters", server("https://a/" + strings.Repeat("ä", 2038)), true},
		{"an http proxy", proxy("http://a:3128"), true},
		{"an https proxy", proxy("https://a"), true},
		{"a socks proxy", proxy("socks5://a:1080"), true},
		{"a proxy of another scheme", proxy("socks4://a"), false},
		{"a proxy in capitals", proxy("HTTP://a"), true},
		{"a proxy without a host", proxy("http://"), false},
		{"a proxy without a scheme", proxy("a:3128"), false},
		{"a long proxy", proxy("http://a/" + strings.Repeat("a", 2040)), false},
		{"a server name of 253 characters", cluster(func(c *clientcmdv1.Cluster) { c.TLSServerName = strings.Repeat("a", 253) }), true},
		{"a server name of 254 characters", cluster(func(c *clientcmdv1.Cluster) { c.TLSServerName = strings.Repeat("a", 254) }), false},
		{"a path of a certificate authority", cluster(func(c *clientcmdv1.Cluster) { c.CertificateAuthority = "/ca" }), true},
		{"two extensions", extensions("a", "{}", "b", `{"a":1}`), true},
		{"an extension twice", extensions("a", "{}", "a", "{}"), false},
		{"an extension that is a list", extensions("a", "[]"), false},
		{"a manager of 63 characters", manager(strings.Repeat("m", 63)), true},
		{"a manager of 64 characters", manager(strings.Repeat("m", 64)), false},
		{"a manager with dots", manager("a.B_c-d"), true},
		{"a manager with a slash", manager("a/b"), false},
		{"a manager with a hyphen at the end", manager("a-"), false},
		{"a manager without a name", manager(""), false},
		{"access without a name", providers(""), false},
		{"access with a name of 253 characters", providers(strings.Repeat("a", 253)), true},
		{"access with a name of 254 characters", providers(strings.Repeat("a", 254)), false},
		{"access twice", providers("a", "a"), false},
		{"no access", providers(), true},
		{"64 ways of access", providers(numbers(64)...), true},
		{"65 ways of access", providers(numbers(65)...), false},
		{"a property", properties(v1alpha1.Property{Name: "a", Value: "b"}), true},
		{"a property without a value", properties(v1alpha1.Property{Name: "a"}), false},
		{"a property without a name", properties(v1alpha1.Property{Value: "a"}), false},
		{"a property with a long value", properties(v1alpha1.Property{Name: "a", Value: long}), true},
		{"a property with a longer value", properties(v1alpha1.Property{Name: "a", Value: long + "a"}), false},
		{"a property with a long name", properties(v1alpha1.Property{Name: strings.Repeat("a", 254), Value: "a"}), false},
		{"a property twice", properties(v1alpha1.Property{Name: "a", Value: "b"}, v1alpha1.Property{Name: "a", Value: "c"}), false},
		{"a deprecated provider without a server", func(p *inventory.Profile) {
			p.Status.CredentialProviders = []inventory.AccessProvider{{Name: "a"}}
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			h.deleteAll(t)
			profile := versioned("linted", "")
			tc.change(profile)
			err := h.put(t, "v1alpha2", profile)
			g.Expect(err == nil || apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			g.Expect(err == nil).To(Equal(tc.valid), "API server: %v", err)
			g.Expect(lint.V1alpha2Faults(profile)).To(HaveLen(map[bool]int{true: 0, false: 1}[tc.valid]), "linter; API server: %v", err)
		})
	}
}

func TestHubList(t *testing.T) {
	g := NewWithT(t)
	h := newVersionedHub(t)
	h.deleteAll(t)
	g.Expect(h.put(t, "v1alpha1", versioned("one", "1"))).To(Succeed())
	g.Expect(h.put(t, "v1alpha1", versioned("two", "1"))).To(Succeed())
	decision := &v1alpha1.PlacementDecision{Decisions: []v1alpha1.ClusterDecision{{}}}
	decision.Namespace, decision.Name = "default", "decision"
	decision.Decisions[0].ClusterProfileRef.Name = "three"
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(decision)
	g.Expect(err).NotTo(HaveOccurred())
	created := &unstructured.Unstructured{Object: content}
	created.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PlacementDecision"))
	g.Expect(h.client.Create(t.Context(), created)).To(Succeed())
	t.Cleanup(func() { _ = h.client.Delete(context.WithoutCancel(t.Context()), created) })

	for _, versions := range [][]string{{"v1alpha1", "v1alpha2"}, {"v1alpha2"}} {
		h.serve(t, versions...)
		for _, namespace := range []string{"default", ""} {
			profiles, decisions, err := hub.List(t.Context(), h.Config, namespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(profiles).To(HaveLen(2))
			g.Expect(profiles[0].Status.AccessProviders).To(HaveLen(1))
			g.Expect(decisions).To(HaveLen(1))
			g.Expect(decisions[0].Decisions[0].ClusterProfileRef.Name).To(Equal("three"))
		}
		profiles, _, err := hub.List(t.Context(), h.Config, "kube-system")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(profiles).To(BeEmpty())
	}
	h.serve(t, "v1alpha1", "v1alpha2")
}
