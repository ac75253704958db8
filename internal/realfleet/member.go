// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package realfleet

import (
	"context"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// memberNamespace has the controller's service account in a member.
const memberNamespace = "rollcall"

// Member is a cluster whose ConfigMaps are reconciled.
type Member struct {
	*ControlPlane
	Namespace string     // of its ClusterProfile
	Network   *Forwarder // between the controller and the cluster
	id        string     // the cluster's ID (KEP-2149)
	account   *corev1.ServiceAccount
	subject   rbacv1.Subject // the controller

	// Audience of the hub's tokens that the cluster accepts. Empty if it does not trust
	// the hub, but has a token of its own.
	Audience string

	Token       string         // the current token
	BoundSecret *corev1.Secret // deleting it revokes the current token
}

// NewMember sets up a cluster for the controller: a service account that can only
// read ConfigMaps, and a token for it.
func NewMember(ctx context.Context, cp *ControlPlane) (*Member, error) {
	account := &corev1.ServiceAccount{ObjectMeta: named(memberNamespace, "controller")}
	err := cp.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: memberNamespace}}, account)
	if err != nil {
		return nil, err
	}
	return newMember(ctx, &Member{
		ControlPlane: cp, Namespace: FleetNamespace, account: account,
		subject: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name},
	})
}

// newMember lets the controller read ConfigMaps and connects.
func newMember(ctx context.Context, m *Member) (*Member, error) {
	var err error
	if m.id, err = m.identify(ctx); err != nil {
		return nil, err
	}
	err = m.Create(ctx,
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "configmap-reader"},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "controller-reads-configmaps"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "configmap-reader"},
			Subjects:   []rbacv1.Subject{m.subject},
		},
	)
	if err != nil {
		return nil, err
	}
	return m, m.connect(ctx)
}

// AllowIdentity lets the controller get the namespace kube-system, whose UID identifies
// the cluster.
func (m *Member) AllowIdentity(ctx context.Context) error {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-identity-reader"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{metav1.NamespaceSystem}, Verbs: []string{"get"}},
		},
	}
	return m.Create(ctx, role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "controller-reads-cluster-identity"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{m.subject},
	})
}

// connect issues a token, if the member needs one, and opens an address of its own.
func (m *Member) connect(ctx context.Context) error {
	if m.Audience == "" {
		if err := m.ReplaceToken(ctx); err != nil {
			return err
		}
	}
	var err error
	m.Network, err = m.NewNetwork()
	return err
}

// Server is the URL of the member's server behind its Network.
func (m *Member) Server() string { return "https://" + m.Network.Addr() }

// TokenKubeconfig returns a kubeconfig with the current token and the URL of a server.
func (m *Member) TokenKubeconfig(server string) ([]byte, error) {
	return clientcmd.Write(*m.kubeconfig(server, m.Token))
}

// Again returns the same cluster for another ClusterProfile, in another namespace. It
// has an address of its own and, unless it trusts the hub, a token of its own. Its
// Network must be closed.
func (m *Member) Again(ctx context.Context, namespace string) (*Member, error) {
	again := &Member{ControlPlane: m.ControlPlane, Namespace: namespace, id: m.id, account: m.account, subject: m.subject, Audience: m.Audience}
	return again, again.connect(ctx)
}

// identify returns the UID of the namespace kube-system, the cluster ID that
// KEP-2149 recommends.
func (m *Member) identify(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{}
	if err := m.Client.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", err
	}
	return string(namespace.UID), nil
}

// ReplaceToken issues a token that can be revoked. The previous one stays valid.
func (m *Member) ReplaceToken(ctx context.Context) error {
	bound := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: memberNamespace, GenerateName: "controller-token-"}}
	if err := m.Create(ctx, bound); err != nil {
		return err
	}
	token, err := m.IssueToken(ctx, m.account, bound)
	if err != nil {
		return err
	}
	m.Token, m.BoundSecret = token, bound
	return nil
}

// Status returns the HTTP status of a request with the token.
func (m *Member) Status(ctx context.Context, token string) (int, error) {
	config := rest.AnonymousClientConfig(m.Config)
	config.BearerToken = token
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(config.Host, "/")+"/api/v1/configmaps?limit=1", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// CreateConfigMap creates a ConfigMap for the controller to reconcile.
func (m *Member) CreateConfigMap(ctx context.Context, name string) error {
	return m.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: named(metav1.NamespaceDefault, name),
		Data:       map[string]string{"cluster": m.Name},
	})
}

// DeleteConfigMap deletes a ConfigMap of CreateConfigMap.
func (m *Member) DeleteConfigMap(ctx context.Context, name string) error {
	return m.Client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: named(metav1.NamespaceDefault, name)})
}
