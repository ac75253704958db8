// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

func TestClusterName(t *testing.T) {
	g := NewWithT(t)
	p := &Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "eu-1"}}
	g.Expect(ClusterName(p)).To(Equal("fleet/eu-1"))
	p.Annotations = map[string]string{AnnotationClusterName: "kind#eu"}
	g.Expect(ClusterName(p)).To(Equal("kind#eu"), "the name in the source comes first")
}

func TestIdentityProperties(t *testing.T) {
	g := NewWithT(t)
	p := &Profile{}
	g.Expect(ClusterID(p)).To(BeEmpty())
	g.Expect(ClusterSet(p)).To(BeEmpty())
	p.Status.Properties = []v1alpha1.Property{
		{Name: PropertyClusterID, Value: "0815"},
		{Name: PropertyClusterSet, Value: "production"},
	}
	g.Expect(ClusterID(p)).To(Equal("0815"))
	g.Expect(ClusterSet(p)).To(Equal("production"))
	_, ok := Property(p, "region")
	g.Expect(ok).To(BeFalse())
}

func TestAliasOfClusterID(t *testing.T) {
	standard := v1alpha1.Property{Name: PropertyClusterID, Value: "standard"}
	alias := v1alpha1.Property{Name: PropertyClusterIDAlias, Value: "alias"}
	for _, tc := range []struct {
		name       string
		properties []v1alpha1.Property
		want       string
	}{
		{"only the alias", []v1alpha1.Property{alias}, "alias"},
		{"the standard name wins", []v1alpha1.Property{alias, standard}, "standard"},
		{"an empty ID is none", []v1alpha1.Property{{Name: PropertyClusterID}, alias}, "alias"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			p := &Profile{Status: v1alpha1.ClusterProfileStatus{Properties: tc.properties}}
			g.Expect(ClusterID(p)).To(Equal(tc.want))
			selected, err := Selection{Properties: []PropertyExpression{
				{Name: PropertyClusterID, Operator: PropertyIn, Values: []string{tc.want}},
			}}.Predicate()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(selected(p)).To(BeTrue(), "a selection reads the same")
		})
	}
}

func TestMemberID(t *testing.T) {
	g := NewWithT(t)
	p := &Profile{}
	g.Expect(MemberID(p)).To(BeEmpty())
	p.Labels = map[string]string{"multicluster.x-k8s.io/inventory-member-id": "m1"}
	g.Expect(MemberID(p)).To(Equal("m1"))
}

func TestAccessProviders(t *testing.T) {
	g := NewWithT(t)
	p := &Profile{}
	p.Status.AccessProviders = []AccessProvider{accessProvider("a", "https://new")}
	p.Status.CredentialProviders = []AccessProvider{accessProvider("b", "https://b"), accessProvider("a", "https://old")}
	g.Expect(AccessProviders(p)).To(Equal([]AccessProvider{
		accessProvider("a", "https://new"), accessProvider("b", "https://b"),
	}))
}

func TestFingerprint(t *testing.T) {
	base := func() *Profile {
		p := &Profile{}
		p.Status.AccessProviders = []AccessProvider{accessProvider("a", "https://a"), accessProvider("b", "https://b")}
		return p
	}
	for _, tc := range []struct {
		name   string
		change func(*Profile)
		same   bool
	}{
		{"a heartbeat keeps it", func(p *Profile) {
			p.Status.Properties = []v1alpha1.Property{{Name: "beat", Value: "1", LastObservedTime: metav1.NewTime(time.Now())}}
		}, true},
		{"conditions keep it", func(p *Profile) {
			p.Status.Conditions = []metav1.Condition{{Type: "ControlPlaneHealthy", Status: metav1.ConditionFalse}}
		}, true},
		{"labels, annotations and the resource version keep it", func(p *Profile) {
			p.Labels, p.Annotations, p.ResourceVersion = map[string]string{"a": "b"}, map[string]string{"a": "b"}, "7"
		}, true},
		{"the order of the providers keeps it", func(p *Profile) {
			providers := p.Status.AccessProviders
			providers[0], providers[1] = providers[1], providers[0]
		}, true},
		{"the deprecated field is equivalent", func(p *Profile) {
			p.Status.AccessProviders, p.Status.CredentialProviders = nil, p.Status.AccessProviders
		}, true},
		{"another server changes it", func(p *Profile) { p.Status.AccessProviders[1].Cluster.Server = "https://c" }, false},
		{"another CA changes it", func(p *Profile) { p.Status.AccessProviders[1].Cluster.CertificateAuthorityData = []byte("ca") }, false},
		{"an extension changes it", func(p *Profile) {
			p.Status.AccessProviders[1].Cluster.Extensions = []clientcmdv1.NamedExtension{{Name: "x", Extension: runtime.RawExtension{Raw: []byte(`{"a":1}`)}}}
		}, false},
		{"a removed provider changes it", func(p *Profile) { p.Status.AccessProviders = p.Status.AccessProviders[:1] }, false},
		{"an extension that is not JSON changes it", func(p *Profile) {
			p.Status.AccessProviders[1].Cluster.Extensions = []clientcmdv1.NamedExtension{{Name: "x", Extension: runtime.RawExtension{Raw: []byte(`{`)}}}
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			changed := base()
			tc.change(changed)
			g.Expect(Fingerprint(changed) == Fingerprint(base())).To(Equal(tc.same))
			g.Expect(Fingerprint(changed)).To(Equal(Fingerprint(changed)))
		})
	}
}

func accessProvider(name, server string) AccessProvider {
	return AccessProvider{Name: name, Cluster: clientcmdv1.Cluster{Server: server}}
}
