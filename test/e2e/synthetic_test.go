// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

var syntheticProfiles = []struct {
	name      string
	synthetic inventory.Synthetic
}{
	{"as little as possible", inventory.Synthetic{ClusterName: "least", Manager: "kind"}},
	{"all fields", inventory.Synthetic{
		ClusterName: "gke_project_europe-west1_All", Manager: "Kubeconfig.v1_a",
		DisplayName: "日本", Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"note": "all there is"},
		ClusterID: "0a3e7d5c-5c0f-4f0e-9d3b-6f2f1b9d6f11", ClusterSet: "production",
		Properties:        map[string]string{"region": "eu west, zone 1"},
		KubernetesVersion: "v1.37.1",
		Conditions: []metav1.Condition{
			{Type: inventory.ConditionControlPlaneHealthy, Status: metav1.ConditionTrue, Reason: "Ready", Message: "answers"},
			{Type: inventory.ConditionJoined, Status: metav1.ConditionUnknown, Reason: "NotAsked"},
		},
		AccessProviders: []inventory.AccessProvider{
			{Name: "plain", Cluster: clientcmdv1.Cluster{Server: "https://127.0.0.1:6443"}},
			{Name: "all", Cluster: clientcmdv1.Cluster{
				Server: "https://[::1]:6443/clusters/a", TLSServerName: "kubernetes", ProxyURL: "socks5://127.0.0.1:1080",
				CertificateAuthorityData: []byte("certificates"), DisableCompression: true,
				Extensions: []clientcmdv1.NamedExtension{{
					Name:      "client.authentication.k8s.io/exec",
					Extension: runtime.RawExtension{Raw: []byte(`{"clusterName":"a","nested":{"list":[1,"2"]}}`)},
				}},
			}},
		},
	}},
	{"the longest values", inventory.Synthetic{
		ClusterName: strings.Repeat("é/", 500), Manager: strings.Repeat("m", 63), ClusterID: strings.Repeat("a", 128),
		Properties: map[string]string{strings.Repeat("n", 253): strings.Repeat("é", 1024)},
		Conditions: []metav1.Condition{{Type: "example.com/Custom", Status: metav1.ConditionFalse, Reason: strings.Repeat("R", 1024), Message: strings.Repeat("m", 32768)}},
	}},
}

func TestSyntheticProfilesAreStoredUnchanged(t *testing.T) {
	hub := realPlanes(t).hub
	for _, tc := range syntheticProfiles {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			profile, err := inventory.Synthesize(tc.synthetic)
			g.Expect(err).NotTo(HaveOccurred())
			stored := apply(t, hub, profile)
			g.Expect(stored.Spec).To(Equal(profile.Spec))
			g.Expect(equality.Semantic.DeepEqual(stored.Status, profile.Status)).To(BeTrue(), "nothing is dropped or changed")
			g.Expect(stored.Labels).To(Equal(profile.Labels))
			g.Expect(stored.Annotations).To(Equal(profile.Annotations))
			g.Expect(inventory.ClusterName(stored)).To(Equal(tc.synthetic.ClusterName))
			g.Expect(inventory.Fingerprint(stored)).To(Equal(inventory.Fingerprint(profile)))

			version := stored.ResourceVersion
			g.Expect(apply(t, hub, profile).ResourceVersion).To(Equal(version), "a second time changes nothing")
		})
	}
}

// What Validate rejects because of the schema, the API server must reject too.
func TestValidateMatchesSchema(t *testing.T) {
	hub := realPlanes(t).hub
	valid := inventory.Synthetic{
		ClusterName: "refused", Manager: "kind", Properties: map[string]string{"a": "b"},
		Conditions:      []metav1.Condition{{Type: "A", Status: metav1.ConditionTrue, Reason: "A"}},
		AccessProviders: []inventory.AccessProvider{{Name: "a", Cluster: clientcmdv1.Cluster{Server: "https://a"}}},
	}
	for _, tc := range []struct {
		name   string
		change func(*inventory.Profile)
	}{
		{"an invalid name", func(p *inventory.Profile) { p.Name = "A" }},
		{"an invalid label", func(p *inventory.Profile) { p.Labels["a"] = "b c" }},
		{"a condition without a reason", func(p *inventory.Profile) { p.Status.Conditions[0].Reason = "" }},
		{"a condition with a sentence for a reason", func(p *inventory.Profile) { p.Status.Conditions[0].Reason = "It is." }},
		{"a condition without a time", func(p *inventory.Profile) { p.Status.Conditions[0].LastTransitionTime = metav1.Time{} }},
		{"a condition twice", func(p *inventory.Profile) {
			p.Status.Conditions = append(p.Status.Conditions, p.Status.Conditions[0])
		}},
		{"an empty property", func(p *inventory.Profile) { p.Status.Properties[0].Value = "" }},
		{"a long property", func(p *inventory.Profile) { p.Status.Properties[0].Value = strings.Repeat("é", 1025) }},
		{"a property with a long name", func(p *inventory.Profile) { p.Status.Properties[0].Name = strings.Repeat("n", 254) }},
		{"a property twice", func(p *inventory.Profile) {
			p.Status.Properties = append(p.Status.Properties, p.Status.Properties[0])
		}},
		{"access twice", func(p *inventory.Profile) {
			p.Status.AccessProviders = append(p.Status.AccessProviders, p.Status.AccessProviders[0])
		}},
		{"an extension that is a list", func(p *inventory.Profile) {
			p.Status.AccessProviders[0].Cluster.Extensions = []clientcmdv1.NamedExtension{{
				Name: "x", Extension: runtime.RawExtension{Raw: []byte(`["a"]`)},
			}}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			profile, err := inventory.Synthesize(valid)
			g.Expect(err).NotTo(HaveOccurred())
			tc.change(profile)
			g.Expect(inventory.Validate(profile)).NotTo(Succeed())
			err = tryPut(t, hub, profile)
			g.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		})
	}
}

// apply writes the profile by server-side apply, status included, and returns
// what is stored.
func apply(t *testing.T, hub *realfleet.Hub, profile *inventory.Profile) *inventory.Profile {
	t.Helper()
	g := NewWithT(t)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(profile)
	g.Expect(err).NotTo(HaveOccurred())
	configuration := func() runtime.ApplyConfiguration {
		return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)})
	}
	deleteAtEnd(t, hub, profile)
	g.Expect(hub.Client.Apply(t.Context(), configuration(), client.FieldOwner("test"))).To(Succeed())
	g.Expect(hub.Client.SubResource("status").Apply(t.Context(), configuration(), client.FieldOwner("test"))).To(Succeed())
	stored := &inventory.Profile{}
	g.Expect(hub.Client.Get(t.Context(), client.ObjectKeyFromObject(profile), stored)).To(Succeed())
	return stored
}

// tryPut creates the profile and updates its status.
func tryPut(t *testing.T, hub *realfleet.Hub, profile *inventory.Profile) error {
	t.Helper()
	deleteAtEnd(t, hub, profile)
	written := profile.DeepCopy()
	if err := hub.Client.Create(t.Context(), written); err != nil {
		return err
	}
	profile.Status.DeepCopyInto(&written.Status) // Create has emptied it: status is a subresource
	return hub.Client.Status().Update(t.Context(), written)
}

func deleteAtEnd(t *testing.T, hub *realfleet.Hub, profile *inventory.Profile) {
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(hub.Client.Delete(ctx, profile.DeepCopy())); err != nil {
			t.Error(err)
		}
	})
}
