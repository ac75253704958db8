// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// execExtension is the config of a credential plugin (KEP-5339).
const execExtension = "client.authentication.k8s.io/exec"

// identityRule lets the fleet identify the cluster.
var identityRule = rbacv1.PolicyRule{
	APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{metav1.NamespaceSystem}, Verbs: []string{"get"},
}

// memberObjects returns the objects in the member, in the order in which they are
// created. The user is that of AccessOIDC, or "".
func (s *session) memberObjects(user string) []client.Object {
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
	var objects []client.Object
	name := s.objectName()
	if user == "" {
		meta := metav1.ObjectMeta{Namespace: s.o.MemberNamespace, Name: name}
		subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.o.MemberNamespace, Name: name}
		objects = append(objects,
			&corev1.ServiceAccount{ObjectMeta: meta},
			&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{name}, Verbs: []string{"create"}},
			}},
			&rbacv1.RoleBinding{
				ObjectMeta: meta,
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
				Subjects:   []rbacv1.Subject{subject},
			},
		)
	}
	roleName := s.clusterRoleName(s.o.MemberNamespace)
	objects = append(objects,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: roleName}, Rules: append(slices.Clone(s.o.Rules), identityRule)},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: roleName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
			Subjects:   []rbacv1.Subject{subject},
		},
	)
	for i, object := range objects {
		objects[i] = copyOf(object)
		s.mark(objects[i])
	}
	return objects
}

// copyOf unshares the maps of objects with the same metadata.
func copyOf(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }

// secret returns the Secret in the hub, with the token.
func (s *session) secret(token string) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.o.SecretNamespace, Name: s.objectName(),
			Labels: map[string]string{LabelInventory: s.namespace},
			Annotations: map[string]string{
				AnnotationServer: s.o.Server, AnnotationTokenLifetime: s.o.TokenLifetime.String(), AnnotationMemberID: s.memberID,
			},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{corev1.ServiceAccountTokenKey: []byte(token)},
	}
	if len(s.o.CAData) > 0 {
		secret.Data[corev1.ServiceAccountRootCAKey] = s.o.CAData
	}
	s.mark(secret)
	return secret
}

// secretReference is the config of the plugin token-secret.
type secretReference struct {
	SecretRef struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Key       string `json:"key"`
	} `json:"secretRef"`
}

// profile returns the ClusterProfile. It keeps the times of the previous one.
func (s *session) profile(access Access, previous *inventory.Profile) (*inventory.Profile, error) {
	config := any(map[string]string{"audience": s.o.Audience})
	if access == AccessTokenSecret {
		reference := secretReference{}
		reference.SecretRef.Namespace, reference.SecretRef.Name = s.o.SecretNamespace, s.objectName()
		reference.SecretRef.Key = corev1.ServiceAccountTokenKey
		config = reference
	}
	extension, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	maps.Copy(labels, s.o.Labels)
	labels[inventory.LabelMemberID] = s.memberID
	profile, err := inventory.Synthesize(inventory.Synthetic{
		ClusterName: s.String(), Manager: Manager, Namespace: s.namespace, Name: s.name, DisplayName: s.name,
		Labels: labels, ClusterID: s.memberID, KubernetesVersion: s.version, Previous: previous,
		Conditions: []metav1.Condition{
			{
				Type: v1alpha1.ClusterConditionControlPlaneHealthy, Status: metav1.ConditionTrue,
				Reason: "Responding", Message: "The API server has responded to " + Manager,
			},
			{
				Type: inventory.ConditionJoined, Status: metav1.ConditionTrue,
				Reason: "Registered", Message: "The cluster was registered by " + Manager,
			},
		},
		AccessProviders: []inventory.AccessProvider{{
			Name: string(access),
			Cluster: clientcmdv1.Cluster{
				Server: s.o.Server, CertificateAuthorityData: s.o.CAData,
				Extensions: []clientcmdv1.NamedExtension{{Name: execExtension, Extension: runtime.RawExtension{Raw: extension}}},
			},
		}},
	})
	if err != nil {
		return nil, err
	}
	profile.Annotations = nil // the cluster name is that of the profile
	s.mark(profile)
	return profile, nil
}

// secretOf returns the namespace of the profile's Secret, or "".
func secretOf(profile *inventory.Profile) string {
	for _, provider := range inventory.AccessProviders(profile) {
		for _, extension := range provider.Cluster.Extensions {
			reference := secretReference{}
			if extension.Name == execExtension && json.Unmarshal(extension.Extension.Raw, &reference) == nil && reference.SecretRef.Namespace != "" {
				return reference.SecretRef.Namespace
			}
		}
	}
	return ""
}
