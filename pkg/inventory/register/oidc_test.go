// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/inventory/register"
)

// startPlane starts a control plane with flags of its API server.
func startPlane(t *testing.T, name string, flags func(address string) map[string]string) *realfleet.ControlPlane {
	t.Helper()
	assets, home := os.Getenv("KUBEBUILDER_ASSETS"), t.TempDir()
	plane := &envtest.ControlPlane{
		Etcd: &envtest.Etcd{Path: filepath.Join(assets, "etcd"), DataDir: filepath.Join(home, "etcd"), StartTimeout: time.Minute},
		APIServer: &envtest.APIServer{
			Path: filepath.Join(assets, "kube-apiserver"), CertDir: filepath.Join(home, "certificates"), StartTimeout: time.Minute,
		},
	}
	if err := os.MkdirAll(filepath.Join(home, "certificates"), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	_ = listener.Close()
	plane.APIServer.SecureServing.ListenAddr = envtest.ListenAddr{Address: address.IP.String(), Port: strconv.Itoa(address.Port)}
	for flag, value := range flags(address.String()) {
		plane.APIServer.Configure().Set(flag, value)
	}
	if err := plane.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop() })
	admin, err := plane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(admin.Config(), client.Options{Scheme: hub.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(func() error {
		return c.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{})
	}, time.Minute, 50*time.Millisecond).Should(Succeed())
	return &realfleet.ControlPlane{Name: name, Config: admin.Config(), Client: c}
}

// TestOIDC registers a member before and after it trusts the hub.
func TestOIDC(t *testing.T) {
	planes(t)
	g := NewWithT(t)
	// By default, API servers publish an address for their keys at which they do not
	// listen in tests.
	issuer := startPlane(t, "issuer", func(address string) map[string]string {
		return map[string]string{"service-account-jwks-uri": "https://" + address + "/openid/v1/jwks"}
	})
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	g.Expect(os.WriteFile(file, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"), 0o600)).To(Succeed())
	member := startPlane(t, "trusting", func(string) map[string]string { return map[string]string{"authentication-config": file} })
	own, err := realfleet.NewHub(t.Context(), issuer, crd)
	g.Expect(err).NotTo(HaveOccurred())
	o := register.Options{
		Hub: own.Config, Namespace: realfleet.FleetNamespace, Name: "c1", Member: member.Config, Rules: rules, MemberNamespace: "access",
		ServiceAccount: types.NamespacedName{Namespace: own.ControllerAccount.Namespace, Name: own.ControllerAccount.Name},
	}
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	marked := client.HasLabels{register.LabelRegistration}

	// The member does not trust the hub yet: by default a token is stored.
	result := mustRegister(t, o)
	g.Expect(result.Access).To(Equal(register.AccessTokenSecret))
	g.Expect(result.Warnings).To(ContainElement(ContainSubstring("does not trust the hub")))
	before, after := &inventory.Profile{}, &inventory.Profile{}
	g.Expect(issuer.Client.Get(t.Context(), key, before)).To(Succeed())
	o.Access = register.AccessOIDC
	_, err = register.Register(t.Context(), o)
	g.Expect(err).To(MatchError(register.ErrNotTrusted))
	g.Expect(issuer.Client.Get(t.Context(), key, after)).To(Succeed())
	g.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))

	// It needs this, and permission to read it.
	trust, err := register.AuthenticationConfiguration(t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(trust.Warnings).To(ConsistOf(ContainSubstring("issuer-discovery")))
	g.Expect(own.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "issuer-discovery"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:service-account-issuer-discovery"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:unauthenticated"}},
	})).To(Succeed())
	g.Eventually(func() ([]string, error) {
		trust, err = register.AuthenticationConfiguration(t.Context(), o)
		return trust.Warnings, err
	}).Should(BeEmpty())
	next := file + ".next"
	g.Expect(os.WriteFile(next, []byte(trust.Configuration), 0o600)).To(Succeed())
	g.Expect(os.Rename(next, file)).To(Succeed())

	// Then what was stored is removed, and the user of the hub is known.
	g.Eventually(func() error {
		result, err = register.Register(t.Context(), o)
		return err
	}, 90*time.Second, 500*time.Millisecond).Should(Succeed())
	g.Expect(result.Access).To(Equal(register.AccessOIDC))
	g.Expect(result.User).To(Equal(trust.User))
	g.Expect(result.Warnings).To(BeEmpty())
	g.Expect(issuer.Client.Get(t.Context(), key, after)).To(Succeed())
	provider := inventory.AccessProviders(after)[0]
	g.Expect(provider.Name).To(Equal("oidc"))
	audience := strings.TrimRight(member.Config.Host, "/")
	g.Expect(string(provider.Cluster.Extensions[0].Extension.Raw)).To(MatchJSON(`{"audience": "` + audience + `"}`))
	secrets, accounts := &corev1.SecretList{}, &corev1.ServiceAccountList{}
	g.Expect(issuer.Client.List(t.Context(), secrets, marked)).To(Succeed())
	g.Expect(secrets.Items).To(BeEmpty())
	g.Expect(member.Client.List(t.Context(), accounts, marked)).To(Succeed())
	g.Expect(accounts.Items).To(BeEmpty())

	// The controller's own account has the permissions of the rules.
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	g.Expect(issuer.Client.SubResource("token").Create(t.Context(), own.ControllerAccount.DeepCopy(), request)).To(Succeed())
	g.Expect(allowed(t, member, request.Status.Token)).To(Equal(200))

	// By default it is oidc now, and nothing changes.
	o.Access = register.AccessAuto
	again := mustRegister(t, o)
	g.Expect(again.Access).To(Equal(register.AccessOIDC))
	g.Expect(again.Changes).To(Satisfy(haveActions(register.Unchanged)))

	removed, err := register.Unregister(t.Context(), unregister(o))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(removed.Changes).To(HaveLen(3))
	g.Expect(allowed(t, member, request.Status.Token)).To(Equal(403))
}

func TestOIDCRefuses(t *testing.T) {
	planes(t)
	account := types.NamespacedName{Namespace: "fleet", Name: "controller"}
	for _, tt := range []struct {
		name   string
		change func(o *register.Options)
		want   string
	}{
		{"no ServiceAccount", func(o *register.Options) { o.ServiceAccount = types.NamespacedName{} }, "needs the service account"},
		{"one that does not exist", func(o *register.Options) { o.ServiceAccount.Name = "missing" }, `serviceaccounts "missing" not found`},
		{"the audience of the hub", func(o *register.Options) { o.Audience = hub.Issuer() }, "one of the hub's own API server"},
		{"a prefix of Kubernetes", func(o *register.Options) { o.UsernamePrefix = "system:" }, "must not begin with system:"},
		{"an audience with a space", func(o *register.Options) { o.Audience = "a b" }, "visible ASCII"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t, east)
			o.Access, o.ServiceAccount = register.AccessOIDC, account
			tt.change(&o)
			_, err := register.Register(t.Context(), o)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}
