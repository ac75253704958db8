// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package realfleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

const (
	// FleetNamespace has the ClusterProfiles and the controller's service account.
	FleetNamespace = "fleet"

	// SecondNamespace has further ClusterProfiles of members: it is another inventory.
	SecondNamespace = "apps"

	// TokenNamespace has the Secrets with the members' tokens, and the plugin's
	// service account.
	TokenNamespace = "fleet-tokens"

	// clusterManager is the manager of the profiles.
	clusterManager = "quickstart"

	// AccessProvider is the name of the access provider in the profiles and of
	// the plugin's entry in the provider file.
	AccessProvider = "token-secret"
)

// Hub is the cluster with the ClusterProfiles and the members' tokens.
type Hub struct {
	*ControlPlane
	ControllerAccount *corev1.ServiceAccount
	PluginAccount     *corev1.ServiceAccount
}

// NewHub sets up a cluster as a hub: the CRD of ClusterProfiles, from the file
// crd, and service accounts with minimal permissions for the controller and the
// plugin.
func NewHub(ctx context.Context, cp *ControlPlane, crd string) (*Hub, error) {
	h := &Hub{
		ControlPlane:      cp,
		ControllerAccount: &corev1.ServiceAccount{ObjectMeta: named(FleetNamespace, "controller")},
		PluginAccount:     &corev1.ServiceAccount{ObjectMeta: named(TokenNamespace, "token-secret")},
	}
	if _, err := envtest.InstallCRDs(cp.Config, envtest.CRDInstallOptions{
		Paths: []string{crd}, ErrorIfPathMissing: true, MaxTime: startLimit,
	}); err != nil {
		return nil, fmt.Errorf("installing the CRD of ClusterProfiles: %w", err)
	}
	return h, h.Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: FleetNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SecondNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: TokenNamespace}},

		h.ControllerAccount,
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "clusterprofile-reader"},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"clusterprofiles"}, Verbs: []string{"list", "watch"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "controller-reads-clusterprofiles"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "clusterprofile-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: FleetNamespace, Name: h.ControllerAccount.Name}},
		},

		h.PluginAccount,
		&rbacv1.Role{
			ObjectMeta: named(TokenNamespace, "token-getter"),
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
			},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: named(TokenNamespace, "plugin-gets-tokens"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "token-getter"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: TokenNamespace, Name: h.PluginAccount.Name}},
		},
	)
}

// AddMember creates the member's Secret, with its token, and its ClusterProfile.
func (h *Hub) AddMember(ctx context.Context, m *Member) error {
	profile, err := profileOf(m)
	if err != nil {
		return err
	}
	status := profile.Status.DeepCopy()
	if err := h.Create(ctx, secretOf(m), profile); err != nil {
		return err
	}
	profile.Status = *status // Create cleared it: status is a subresource
	if err := h.Client.Status().Update(ctx, profile); err != nil {
		return fmt.Errorf("updating the status of ClusterProfile %s: %w", profile.Name, err)
	}
	return nil
}

// secretOf returns the Secret with the member's token, which may only be sent to
// the member's server.
func secretOf(m *Member) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: named(TokenNamespace, m.secretName()),
		Data: map[string][]byte{
			corev1.ServiceAccountTokenKey:  []byte(m.Token),
			corev1.ServiceAccountRootCAKey: m.Config.CAData,
		},
	}
	secret.Annotations = map[string]string{tokensecret.AnnotationServer: m.Server()}
	return secret
}

func (m *Member) secretName() string { return m.Namespace + "-" + m.Name }

// profileOf returns the member's ClusterProfile (KEP-4322). It names the access
// provider and has the config for the plugin (KEP-5339), but no secret.
func profileOf(m *Member) (*inventory.Profile, error) {
	pluginConfig, err := json.Marshal(map[string]any{
		"secretRef": map[string]string{"namespace": TokenNamespace, "name": m.secretName(), "key": "token"},
	})
	if err != nil {
		return nil, err
	}
	now := metav1.Now()
	return &inventory.Profile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace,
			Name:      m.Name,
			Labels: map[string]string{
				v1alpha1.LabelClusterManagerKey: clusterManager,
				inventory.LabelMemberID:         m.id,
			},
		},
		Spec: v1alpha1.ClusterProfileSpec{
			DisplayName:    m.Name,
			ClusterManager: v1alpha1.ClusterManager{Name: clusterManager},
		},
		Status: v1alpha1.ClusterProfileStatus{
			Conditions: []metav1.Condition{{
				Type: v1alpha1.ClusterConditionControlPlaneHealthy, Status: metav1.ConditionTrue,
				Reason: "Started", LastTransitionTime: now,
			}},
			Properties: []v1alpha1.Property{
				{Name: inventory.PropertyClusterID, Value: m.id, LastObservedTime: now},
			},
			AccessProviders: []inventory.AccessProvider{{
				Name: AccessProvider,
				Cluster: clientcmdv1.Cluster{
					Server:                   m.Server(),
					CertificateAuthorityData: m.Config.CAData,
					Extensions: []clientcmdv1.NamedExtension{{
						Name:      "client.authentication.k8s.io/exec",
						Extension: runtime.RawExtension{Raw: pluginConfig},
					}},
				},
			}},
		},
	}, nil
}

// PutToken replaces the member's token in the hub.
func (h *Hub) PutToken(ctx context.Context, m *Member) error {
	secret := &corev1.Secret{ObjectMeta: named(TokenNamespace, m.secretName())}
	before := secret.DeepCopy()
	secret.Data = map[string][]byte{"token": []byte(m.Token)}
	return h.Client.Patch(ctx, secret, client.MergeFrom(before))
}

// PutServer replaces the URL of the member's server in the hub: in its profile, and in
// its Secret, so that the plugin gives out the token for it.
func (h *Hub) PutServer(ctx context.Context, m *Member, server string) error {
	secret := &corev1.Secret{ObjectMeta: named(TokenNamespace, m.secretName())}
	before := secret.DeepCopy()
	secret.Annotations = map[string]string{tokensecret.AnnotationServer: server}
	if err := h.Client.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
		return err
	}
	profile := &inventory.Profile{}
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Name}, profile); err != nil {
		return err
	}
	profile.Status.AccessProviders[0].Cluster.Server = server
	return h.Client.Status().Update(ctx, profile)
}

// Heartbeat updates the status of the member's profile, as cluster managers do.
func (h *Hub) Heartbeat(ctx context.Context, m *Member) error {
	profile := &inventory.Profile{}
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Name}, profile); err != nil {
		return err
	}
	// The API stores whole seconds; each heartbeat must differ from the last.
	seen := &profile.Status.Properties[0].LastObservedTime
	*seen = metav1.NewTime(seen.Add(time.Second))
	return h.Client.Status().Update(ctx, profile)
}

// DeleteProfile deletes the member's ClusterProfile.
func (h *Hub) DeleteProfile(ctx context.Context, m *Member) error {
	return h.Client.Delete(ctx, &inventory.Profile{ObjectMeta: named(m.Namespace, m.Name)})
}

// RemoveMember deletes the member's ClusterProfile, if it exists, and its Secret.
func (h *Hub) RemoveMember(ctx context.Context, m *Member) error {
	return errors.Join(
		client.IgnoreNotFound(h.DeleteProfile(ctx, m)),
		h.Client.Delete(ctx, &corev1.Secret{ObjectMeta: named(TokenNamespace, m.secretName())}),
	)
}

// Profiles returns all ClusterProfiles as JSON.
func (h *Hub) Profiles(ctx context.Context) (string, error) {
	profiles := &v1alpha1.ClusterProfileList{}
	if err := h.Client.List(ctx, profiles); err != nil {
		return "", err
	}
	text, err := json.Marshal(profiles)
	return string(text), err
}
