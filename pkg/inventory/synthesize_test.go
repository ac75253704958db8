// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

func TestProfileName(t *testing.T) {
	g := NewWithT(t)
	for _, name := range []string{"eu", "eu-1.example.com", strings.Repeat("a", 63)} {
		g.Expect(ProfileName(name)).To(Equal(name), "a valid name is unchanged")
	}
	g.Expect(ProfileName("gke_project_europe-west1_Prod")).To(MatchRegexp(`^gke-project-europe-west1-prod-[0-9a-v]{16}$`))
	g.Expect(ProfileName("kind/eu")).NotTo(Equal(ProfileName("kind#eu")))
	g.Expect(ProfileName("日本")).To(HavePrefix("cluster-"))
	taken := ProfileName("kind/eu")
	g.Expect(ProfileName(taken)).NotTo(Equal(taken), "a cluster named like another's hashed name")
}

func TestProfileNameIsValidAndUnique(t *testing.T) {
	// Few characters, so that names are similar.
	names := rapid.OneOf(rapid.String(), rapid.StringMatching(`[aA/_.-]{0,8}`), rapid.StringMatching(`[a-c.]{50,80}`))
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		for _, name := range []string{ProfileName(a), ProfileName(b)} {
			if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 || len(name) > 63 {
				t.Fatalf("%q: %v", name, wrong)
			}
		}
		if (a == b) != (ProfileName(a) == ProfileName(b)) {
			t.Fatalf("%q and %q become %q and %q", a, b, ProfileName(a), ProfileName(b))
		}
	})
}

func TestSynthesize(t *testing.T) {
	g := NewWithT(t)
	labels := map[string]string{"tier": "gold"}
	profile, err := Synthesize(Synthetic{
		ClusterName: "kind/eu", Manager: "kind", Labels: labels,
		ClusterID: "0815", ClusterSet: "test", Properties: map[string]string{"region": "eu"},
		KubernetesVersion: "v1.37.2",
		Conditions:        []metav1.Condition{{Type: ConditionControlPlaneHealthy, Status: metav1.ConditionFalse, Reason: "Stopped", Message: "exited"}},
		AccessProviders:   []AccessProvider{accessProvider("kind", "https://127.0.0.1:6443")},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ClusterName(profile)).To(Equal("kind/eu"))
	g.Expect(KeyOf(profile)).To(Equal(Key{Namespace: "default", Name: ProfileName("kind/eu")}))
	g.Expect(profile.Labels).To(Equal(map[string]string{"tier": "gold", v1alpha1.LabelClusterManagerKey: "kind"}))
	g.Expect(labels).To(HaveLen(1), "the argument is not changed")
	g.Expect(ClusterID(profile)).To(Equal("0815"))
	g.Expect(ClusterSet(profile)).To(Equal("test"))
	region, _ := Property(profile, "region")
	g.Expect(region).To(Equal("eu"))
	g.Expect(HealthOf(profile)).To(Equal(Health{Status: Unhealthy, Condition: ConditionControlPlaneHealthy, Reason: "Stopped", Message: "exited"}))
	g.Expect(AccessProviders(profile)).To(Equal([]AccessProvider{accessProvider("kind", "https://127.0.0.1:6443")}))
	version, err := KubernetesVersion(profile)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version.String()).To(Equal("1.37.2"))
}

func TestSynthesizeKeepsTimes(t *testing.T) {
	g := NewWithT(t)
	content := Synthetic{
		ClusterName: "eu", Manager: "kind", Now: time.Unix(1, 0),
		Properties: map[string]string{"a": "1", "b": "1"},
		Conditions: []metav1.Condition{{Type: ConditionControlPlaneHealthy, Status: metav1.ConditionTrue, Reason: "Up"}},
	}
	first, err := Synthesize(content)
	g.Expect(err).NotTo(HaveOccurred())

	content.Previous, content.Now = first, time.Unix(2, 0)
	second, err := Synthesize(content)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second).To(Equal(first))

	content.Properties["b"] = "2"
	content.Conditions[0].Status = metav1.ConditionFalse
	third, err := Synthesize(content)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(third.Status.Properties[0].LastObservedTime.Unix()).To(Equal(int64(1)))
	g.Expect(third.Status.Properties[1].LastObservedTime.Unix()).To(Equal(int64(2)))
	g.Expect(third.Status.Conditions[0].LastTransitionTime.Unix()).To(Equal(int64(2)))
}

func TestSynthesizeRejectsInvalidContent(t *testing.T) {
	access := func(change func(*clientcmdv1.Cluster)) func(*Synthetic) {
		return func(s *Synthetic) {
			s.AccessProviders = []AccessProvider{accessProvider("a", "https://a")}
			change(&s.AccessProviders[0].Cluster)
		}
	}
	extension := func(raw string) func(*Synthetic) {
		return access(func(c *clientcmdv1.Cluster) {
			c.Extensions = []clientcmdv1.NamedExtension{{Name: "x", Extension: runtime.RawExtension{Raw: json.RawMessage(raw)}}}
		})
	}
	const secret = "hunter2"
	for _, tc := range []struct {
		name   string
		change func(*Synthetic)
		want   string
	}{
		{"no cluster name", func(s *Synthetic) { s.ClusterName = "" }, "ClusterName"},
		{"no manager", func(s *Synthetic) { s.Manager = "" }, "spec.clusterManager.name"},
		{"a manager that is not a label value", func(s *Synthetic) { s.Manager = "a b" }, "spec.clusterManager.name"},
		{"an invalid name", func(s *Synthetic) { s.Name = "A" }, "metadata.name"},
		{"an invalid namespace", func(s *Synthetic) { s.Namespace = "a.b" }, "metadata.namespace"},
		{"an invalid label", func(s *Synthetic) { s.Labels = map[string]string{"a": "b c"} }, "metadata.labels"},
		{"an invalid ID", func(s *Synthetic) { s.ClusterID = "A_B" }, "status.properties[0].value"},
		{"an ID that is too long", func(s *Synthetic) { s.ClusterID = strings.Repeat("a", 129) }, "status.properties[0].value"},
		{"an empty property", func(s *Synthetic) { s.Properties = map[string]string{"a": ""} }, "status.properties[0].value"},
		{"a long property", func(s *Synthetic) { s.Properties = map[string]string{"a": strings.Repeat("ä", 1025)} }, "status.properties[0].value"},
		{"a property with a long name", func(s *Synthetic) { s.Properties = map[string]string{strings.Repeat("a", 254): "a"} }, "status.properties[0].name"},
		{"a condition without a reason", func(s *Synthetic) { s.Conditions = []metav1.Condition{{Type: "A", Status: metav1.ConditionTrue}} }, "reason"},
		{"a condition with a sentence as reason", func(s *Synthetic) {
			s.Conditions = []metav1.Condition{{Type: "A", Status: metav1.ConditionTrue, Reason: "It is."}}
		}, "reason"},
		{"a condition twice", func(s *Synthetic) {
			condition := metav1.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "A"}
			s.Conditions = []metav1.Condition{condition, condition}
		}, "Duplicate"},
		{"access without a name", func(s *Synthetic) { s.AccessProviders = []AccessProvider{accessProvider("", "https://a")} }, "accessProviders[0].name"},
		{"access twice", func(s *Synthetic) {
			s.AccessProviders = []AccessProvider{accessProvider("a", "https://a"), accessProvider("a", "https://b")}
		}, "Duplicate"},
		{"access without a server", access(func(c *clientcmdv1.Cluster) { c.Server = "" }), "server"},
		{"a server that is not a URL", access(func(c *clientcmdv1.Cluster) { c.Server = "https://a b:" + secret }), "server"},
		{"a password for the server", access(func(c *clientcmdv1.Cluster) { c.Server = "https://me:" + secret + "@a" }), "server"},
		{"a password for the proxy", access(func(c *clientcmdv1.Cluster) { c.ProxyURL = "https://me:" + secret + "@a" }), "proxy-url"},
		{"a server without a host", access(func(c *clientcmdv1.Cluster) { c.Server = "https://" }), "absolute URL with a host"},
		{"a server without a scheme", access(func(c *clientcmdv1.Cluster) { c.Server = "//" + secret }), "absolute URL with a host"},
		{"a long server", access(func(c *clientcmdv1.Cluster) { c.Server = "https://a/" + strings.Repeat("a", 2039) }), "server"},
		{"a proxy without a host", access(func(c *clientcmdv1.Cluster) { c.ProxyURL = "socks5://" }), "proxy-url"},
		{"a proxy of another kind", access(func(c *clientcmdv1.Cluster) { c.ProxyURL = "ftp://a" }), "http, https, socks5"},
		{"a long server name", access(func(c *clientcmdv1.Cluster) { c.TLSServerName = strings.Repeat("a", 254) }), "tls-server-name"},
		{"access with a long name", func(s *Synthetic) {
			s.AccessProviders = []AccessProvider{accessProvider(strings.Repeat("a", 254), "https://a")}
		}, "accessProviders[0].name"},
		{"many ways of access", func(s *Synthetic) {
			for i := range 65 {
				s.AccessProviders = append(s.AccessProviders, accessProvider(strconv.Itoa(i), "https://a"))
			}
		}, "Too many"},
		{"an extension twice", access(func(c *clientcmdv1.Cluster) {
			extension := clientcmdv1.NamedExtension{Name: "a", Extension: runtime.RawExtension{Raw: json.RawMessage(`{}`)}}
			c.Extensions = []clientcmdv1.NamedExtension{extension, extension}
		}), "Duplicate"},
		{"an empty member ID", func(s *Synthetic) { s.Labels = map[string]string{LabelMemberID: ""} }, "inventory-member-id"},
		{"a file path", access(func(c *clientcmdv1.Cluster) { c.CertificateAuthority = "ca.pem" }), "certificate-authority"},
		{"a private key with the certificates", access(func(c *clientcmdv1.Cluster) {
			c.CertificateAuthorityData = []byte("-----BEGIN EC PRIVATE KEY-----\n" + secret)
		}), "private key"},
		{"an extension that is a list", extension(`["a"]`), "JSON object"},
		{"an extension that is null", extension(`null`), "JSON object"},
		{"an extension that is not JSON", extension(`{`), "JSON"},
		{"an extension without a name", access(func(c *clientcmdv1.Cluster) {
			c.Extensions = []clientcmdv1.NamedExtension{{Extension: runtime.RawExtension{Raw: json.RawMessage(`{}`)}}}
		}), "extensions[0].name"},
		{"an extension with a private key", extension(`{"a":"-----BEGIN PRIVATE KEY-----"}`), "private key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			content := Synthetic{ClusterName: "eu", Manager: "kind"}
			tc.change(&content)
			_, err := Synthesize(content)
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring(secret))
		})
	}
}

func TestValidateRequiresManagerLabel(t *testing.T) {
	g := NewWithT(t)
	profile, err := Synthesize(Synthetic{ClusterName: "eu", Manager: "kind"})
	g.Expect(err).NotTo(HaveOccurred())
	profile.Labels = nil
	g.Expect(Validate(profile)).To(MatchError(ContainSubstring("must be the name of the cluster manager")))
}
