// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/lint"
)

// newProfile returns a valid profile of the member.
func newProfile(key, member string) *inventory.Profile {
	namespace, name, _ := strings.Cut(key, "/")
	p := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelClusterManagerKey: "manager"}}}
	if member != "" {
		p.Labels[inventory.LabelMemberID] = member
	}
	p.Spec.ClusterManager.Name = "manager"
	p.Status.Conditions = []metav1.Condition{}
	p.Status.AccessProviders = []inventory.AccessProvider{{Name: "known", Cluster: clientcmdv1.Cluster{Server: "https://" + name + ".example.com"}}}
	return p
}

func with(p *inventory.Profile, changes ...func(*inventory.Profile)) *inventory.Profile {
	for _, change := range changes {
		change(p)
	}
	return p
}

func clusterID(id string) func(*inventory.Profile) {
	return func(p *inventory.Profile) {
		p.Status.Properties = append(p.Status.Properties, v1alpha1.Property{Name: inventory.PropertyClusterID, Value: id}, v1alpha1.Property{Name: inventory.PropertyClusterSet, Value: "set"})
	}
}

func endpoint(server, ca string) func(*inventory.Profile) {
	return func(p *inventory.Profile) {
		p.Status.AccessProviders[0].Cluster.Server = server
		p.Status.AccessProviders[0].Cluster.CertificateAuthorityData = []byte(ca)
	}
}

func decision(key string, refs ...string) *v1alpha1.PlacementDecision {
	namespace, name, _ := strings.Cut(key, "/")
	d := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, ref := range refs {
		entry := v1alpha1.ClusterDecision{}
		entry.ClusterProfileRef.Name = ref
		if namespace, name, found := strings.Cut(ref, "/"); found {
			entry.ClusterProfileRef.Namespace, entry.ClusterProfileRef.Name = namespace, name
		}
		d.Decisions = append(d.Decisions, entry)
	}
	return d
}

func TestProfiles(t *testing.T) {
	for _, tc := range []struct {
		name      string
		profiles  []*inventory.Profile
		decisions []*v1alpha1.PlacementDecision
		options   lint.Options
		want      []string
	}{
		{name: "nothing is wrong", profiles: []*inventory.Profile{newProfile("a/c1", "m1"), newProfile("a/c2", "m2")}, options: lint.Options{Providers: []string{"known"}}},
		{name: "an empty inventory"},
		{
			name:     "a profile without a member ID",
			profiles: []*inventory.Profile{newProfile("a/c1", "")},
			want:     []string{"warning: ClusterProfile a/c1: it has no label multicluster.x-k8s.io/inventory-member-id, so that consumers cannot tell whether other profiles are of the same cluster"},
		},
		{
			name:     "profiles of one member",
			profiles: []*inventory.Profile{newProfile("b/c1", "m1"), newProfile("a/c1", "m1")},
			want:     []string{`info: ClusterProfile a/c1, b/c1: 2 profiles of one cluster, correlated by the member ID "m1"`},
		},
		{
			name:     "profiles of one member with different clusters",
			profiles: []*inventory.Profile{with(newProfile("a/c1", "m1"), clusterID("one")), with(newProfile("b/c1", "m1"), clusterID("two"))},
			want:     []string{`error: ClusterProfile a/c1, b/c1: they have the member ID "m1", and the different cluster IDs one, two`},
		},
		{
			name:     "profiles of one cluster with different member IDs",
			profiles: []*inventory.Profile{with(newProfile("a/c1", "m1"), clusterID("one")), with(newProfile("b/c1", "m2"), clusterID("one"))},
			want:     []string{`warning: ClusterProfile a/c1, b/c1: 2 profiles have the same cluster ID, and have the different member IDs m1, m2: consumers may take them for 2 clusters`},
		},
		{
			name:     "profiles of one cluster, one without a member ID",
			profiles: []*inventory.Profile{with(newProfile("a/c1", "m1"), clusterID("one"), endpoint("https://x", "ca")), with(newProfile("b/c1", ""), clusterID("one"), endpoint("https://x", "ca"))},
			want: []string{
				`warning: ClusterProfile a/c1, b/c1: 2 profiles have the same cluster ID, and have no common member ID: consumers may take them for 2 clusters`,
				"warning: ClusterProfile b/c1: it has no label multicluster.x-k8s.io/inventory-member-id, so that consumers cannot tell whether other profiles are of the same cluster",
			},
		},
		{
			name:     "profiles of one server",
			profiles: []*inventory.Profile{with(newProfile("a/c1", "m1"), endpoint("https://x/", "ca")), with(newProfile("b/c1", "m2"), endpoint("https://X", "ca"))},
			want:     []string{`warning: ClusterProfile a/c1, b/c1: 2 profiles have the same server and certificate authority, and have the different member IDs m1, m2: consumers may take them for 2 clusters`},
		},
		{
			name:     "profiles of one gateway",
			profiles: []*inventory.Profile{with(newProfile("a/c1", "m1"), endpoint("https://x/c1", "ca")), with(newProfile("b/c1", "m2"), endpoint("https://x/c2", "ca"))},
		},
		{
			name:     "providers that consumers do not know",
			profiles: []*inventory.Profile{newProfile("a/c1", "m1"), with(newProfile("a/c2", "m2"), func(p *inventory.Profile) { p.Status.AccessProviders = nil })},
			options:  lint.Options{Providers: []string{"other"}},
			want: []string{
				`error: ClusterProfile a/c1: no provider serves it: it lists "known"`,
				"error: ClusterProfile a/c2: it lists no access provider",
			},
		},
		{
			name:      "decisions about profiles that do not exist",
			profiles:  []*inventory.Profile{newProfile("a/c1", "m1")},
			decisions: []*v1alpha1.PlacementDecision{decision("a/d", "c1", "c2", "a/c1", "b/c1")},
			want: []string{
				"error: PlacementDecision a/d: it names the profile a/c2, which does not exist",
				"error: PlacementDecision a/d: it names the profile b/c1, which does not exist",
			},
		},
		{
			name:      "decisions about namespaces that were not read",
			decisions: []*v1alpha1.PlacementDecision{decision("a/d", "b/c1")},
			options:   lint.Options{Namespaces: []string{"a"}},
		},
		{
			name: "what v1alpha2 rejects or drops",
			profiles: []*inventory.Profile{with(newProfile("a/c1", "m1"), func(p *inventory.Profile) {
				p.Status.AccessProviders[0].Cluster.Server = "c1.example.com:6443"
				p.Status.AccessProviders[0].Cluster.CertificateAuthority = "/ca"
				p.Status.CredentialProviders = []inventory.AccessProvider{{Name: "old", Cluster: clientcmdv1.Cluster{Server: "https://c1"}}}
			})},
			want: []string{
				"error: ClusterProfile a/c1: status.accessProviders[0].cluster.server: must be an absolute URL with a host",
				"warning: ClusterProfile a/c1: status.credentialProviders: v1alpha2 does not have this field",
				"warning: ClusterProfile a/c1: status.accessProviders[0].cluster.certificate-authority: v1alpha2 does not have this field",
			},
		},
		{
			name:     "the manager's label",
			profiles: []*inventory.Profile{with(newProfile("a/c1", "m1"), func(p *inventory.Profile) { delete(p.Labels, v1alpha1.LabelClusterManagerKey) })},
			want:     []string{"warning: ClusterProfile a/c1: metadata.labels[x-k8s.io/cluster-manager]: must be the name of the cluster manager"},
		},
		{
			name: "a password is not repeated",
			profiles: []*inventory.Profile{with(newProfile("a/c1", "m1"), func(p *inventory.Profile) {
				p.Status.AccessProviders[0].Cluster.ProxyURL = "ftp://u:hunter2@proxy"
			})},
			want: []string{"error: ClusterProfile a/c1: status.accessProviders[0].cluster.proxy-url: must be a URL of http, https or socks5 with a host"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			var got []string
			for _, finding := range lint.Profiles(tc.profiles, tc.decisions, tc.options) {
				got = append(got, finding.String())
				g.Expect(finding.Remedy != "" || finding.Severity == lint.Info).To(BeTrue())
			}
			g.Expect(got).To(Equal(tc.want))
		})
	}
}
