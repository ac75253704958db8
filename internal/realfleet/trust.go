// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package realfleet

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OIDCAccessProvider is the name of the access provider in the profiles of members
// that trust the hub, and of the entry of mc-credential-oidc in the provider file.
const OIDCAccessProvider = "oidc"

// hubUserPrefix precedes the names of the hub's users in a member.
const hubUserPrefix = "hub:"

// authentication is the configuration of a member's API server that trusts the
// hub.
var authentication = template.Must(template.New("authentication").Parse(`apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: {{ printf "%q" .Issuer }}
    audiences: [{{ printf "%q" .Audience }}]
    certificateAuthority: {{ printf "%q" .CA }}
  claimMappings:
    username:
      claim: sub
      prefix: {{ printf "%q" .Prefix }}
  userValidationRules:
  - expression: user.username == '{{ .User }}'
    message: not the service account of the fleet
`))

// AllowTokenRequests creates the service account that members which trust the hub
// know, lets the plugin request its tokens, and lets members read the keys of the
// hub's issuer.
func (h *Hub) AllowTokenRequests(ctx context.Context) error {
	h.MemberAccount = &corev1.ServiceAccount{ObjectMeta: named(FleetNamespace, "members")}
	return h.Create(ctx,
		h.MemberAccount,
		&rbacv1.Role{
			ObjectMeta: named(FleetNamespace, "member-token-requester"),
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
				ResourceNames: []string{h.MemberAccount.Name}, Verbs: []string{"create"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: named(FleetNamespace, "plugin-requests-member-tokens"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "member-token-requester"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: TokenNamespace, Name: h.PluginAccount.Name}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "members-read-issuer"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:service-account-issuer-discovery"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:unauthenticated"}},
		},
	)
}

// StartTrustingControlPlane starts a control plane that accepts tokens of the hub's
// MemberAccount with the control plane's name as the audience; see StartControlPlane.
// AllowTokenRequests must have been called.
func (h *Hub) StartTrustingControlPlane(ctx context.Context, name, assets, dir string) (*ControlPlane, error) {
	var config bytes.Buffer
	if err := authentication.Execute(&config, map[string]string{
		"Issuer": h.Issuer(), "Audience": name, "CA": string(h.Config.CAData), "Prefix": hubUserPrefix, "User": h.MemberUser(),
	}); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name+"-authentication.yaml")
	if err := os.WriteFile(path, config.Bytes(), 0o600); err != nil {
		return nil, err
	}
	return StartControlPlane(ctx, name, assets, dir, Flag{"authentication-config", path})
}

// NewTrustingMember sets up a control plane of StartTrustingControlPlane for the
// controller. The member has no token: the plugin mc-credential-oidc requests tokens
// from the hub.
func (h *Hub) NewTrustingMember(ctx context.Context, cp *ControlPlane) (*Member, error) {
	return newMember(ctx, &Member{
		ControlPlane: cp, Namespace: FleetNamespace, Audience: cp.Name,
		subject: rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: h.MemberUser()},
	})
}

// MemberUser returns the name of MemberAccount in members that trust the hub.
func (h *Hub) MemberUser() string {
	return hubUserPrefix + "system:serviceaccount:" + h.MemberAccount.Namespace + ":" + h.MemberAccount.Name
}

// PluginArgs returns the arguments of mc-credential-oidc for these members.
func (h *Hub) PluginArgs(kubeconfig string, members ...*Member) []string {
	args := []string{"--kubeconfig=" + kubeconfig, "--service-account=" + h.MemberAccount.Namespace + "/" + h.MemberAccount.Name}
	for _, m := range members {
		args = append(args, "--allowed-audience="+m.Audience+"="+m.Server())
	}
	return args
}

// Issuer returns the URL of the control plane's issuer of service account tokens,
// which is also the audience of its own API server.
func (cp *ControlPlane) Issuer() string {
	return "https://" + net.JoinHostPort(cp.plane.APIServer.SecureServing.Address, cp.plane.APIServer.SecureServing.Port)
}

// PublishNextKey restarts the API server with a second key for service account tokens,
// which it accepts and publishes, but does not sign with yet. API servers that trust
// the issuer read its keys at most once an hour: start them after this. The API server
// waits for open watches, so there should be none.
func (cp *ControlPlane) PublishNextKey() error {
	dir := cp.plane.APIServer.CertDir
	cp.nextKey = filepath.Join(dir, "next-sa-signer.key")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(cp.nextKey, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return err
	}
	cp.plane.APIServer.Configure().Set("service-account-key-file", filepath.Join(dir, "sa-signer.crt"), cp.nextKey)
	return cp.restartAPIServer()
}

// SignWithNextKey restarts the API server, which then signs with the key of
// PublishNextKey. Tokens of the previous key stay valid.
func (cp *ControlPlane) SignWithNextKey() error {
	cp.plane.APIServer.Configure().Set("service-account-signing-key-file", cp.nextKey)
	return cp.restartAPIServer()
}

func (cp *ControlPlane) restartAPIServer() error {
	if err := cp.StopAPIServer(); err != nil {
		return err
	}
	return cp.StartAPIServer()
}
