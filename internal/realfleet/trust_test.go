// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package realfleet

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTrustingMember(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("needs KUBEBUILDER_ASSETS: make test")
	}
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-inventory-api").Output()
	g.Expect(err).NotTo(HaveOccurred())
	crd := filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "bases", "multicluster.x-k8s.io_clusterprofiles.yaml")

	cp, err := StartControlPlane(ctx, "hub", assets, dir)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(cp.Stop()).To(Succeed()) })
	hub, err := NewHub(ctx, cp, crd)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(hub.AllowTokenRequests(ctx)).To(Succeed())
	trusting, err := hub.StartTrustingControlPlane(ctx, "north", assets, dir)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(trusting.Stop()).To(Succeed()) })
	north, err := hub.NewTrustingMember(ctx, trusting)
	g.Expect(err).NotTo(HaveOccurred())
	defer north.Network.Close()

	// As the plugin, which may only request tokens of one service account.
	config := rest.CopyConfig(hub.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + hub.PluginAccount.Namespace + ":" + hub.PluginAccount.Name
	plugin, err := client.New(config, client.Options{Scheme: hub.Client.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	token := func(c client.Client, account *corev1.ServiceAccount, audience string) (string, error) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
		err := c.SubResource("token").Create(ctx, account, request)
		return request.Status.Token, err
	}
	_, err = token(plugin, hub.ControllerAccount, "north")
	g.Expect(err).To(MatchError(ContainSubstring("forbidden")))

	valid, err := token(plugin, hub.MemberAccount, "north")
	g.Expect(err).NotTo(HaveOccurred())
	// The API server reads the issuer's keys after its start.
	g.Eventually(func() (int, error) { return north.Status(ctx, valid) }, 30*time.Second, "100ms").Should(Equal(http.StatusOK))
	for _, tc := range []struct {
		name     string
		account  *corev1.ServiceAccount
		audience string
	}{
		{"a token for another member", hub.MemberAccount, "south"},
		{"a token of another service account", hub.ControllerAccount, "north"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			other, err := token(hub.Client, tc.account, tc.audience)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(north.Status(ctx, other)).To(Equal(http.StatusUnauthorized))
		})
	}

	// It has profiles, but no Secret.
	again, err := north.Again(ctx, SecondNamespace)
	g.Expect(err).NotTo(HaveOccurred())
	defer again.Network.Close()
	g.Expect(again.AllowIdentity(ctx)).To(Succeed())
	asController := rest.AnonymousClientConfig(trusting.Config)
	asController.BearerToken = valid
	member, err := client.New(asController, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error {
		return member.Get(ctx, client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{})
	}).Should(Succeed())
	for _, m := range []*Member{north, again} {
		g.Expect(m.Token).To(BeEmpty())
		g.Expect(hub.AddMember(ctx, m)).To(Succeed())
		profile := &v1alpha1.ClusterProfile{}
		g.Expect(hub.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: "north"}, profile)).To(Succeed())
		g.Expect(profile.Status.AccessProviders).To(ConsistOf(HaveField("Name", OIDCAccessProvider)))
		g.Expect(hub.PluginArgs("plugin.kubeconfig", north, again)).To(ContainElement(
			"--allowed-audience=north=" + profile.Status.AccessProviders[0].Cluster.Server))
	}
	secrets := &corev1.SecretList{}
	g.Expect(hub.Client.List(ctx, secrets, client.InNamespace(TokenNamespace))).To(Succeed())
	g.Expect(secrets.Items).To(BeEmpty())
	for _, m := range []*Member{north, again} {
		g.Expect(hub.RemoveMember(ctx, m)).To(Succeed())
	}
	g.Expect(hub.Profiles(ctx)).To(ContainSubstring(`"items":[]`))
}
