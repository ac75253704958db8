// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

// secretNamespace is that of examples/kubeconfig/rbac.yaml.
const secretNamespace = "clusters"

// kubeconfigSecrets has a Secret with a kubeconfig for each member, in a management
// cluster.
type kubeconfigSecrets struct{ management }

func (s *kubeconfigSecrets) terms() terms {
	return terms{
		clusters: "a management cluster and two clusters",
		place:    "management cluster",
		entry:    "kubeconfig Secret",
		explanation: []string{
			"Each has a kubeconfig with the cluster's server and a token. By default, a kubeconfig",
			"in a Secret cannot make the controller run commands or read files.",
		},
		touched:     "The updates changed only an annotation.",
		permissions: "It is configured only for the management cluster, where it can only read these Secrets:",
		programs:    []string{"./examples/kubeconfig"},
		switches:    true,
	}
}

func (s *kubeconfigSecrets) setUp(ctx context.Context, _ *report, q *quickstart) error {
	return s.start(ctx, q, "examples/kubeconfig/rbac.yaml")
}

func (s *kubeconfigSecrets) flags(ctx context.Context) (flags, tokens []string, err error) {
	flags, tokens, err = s.login(ctx, secretNamespace, "controller")
	return append(flags, "--namespace="+secretNamespace), tokens, err
}

func (s *kubeconfigSecrets) clusterName(m *realfleet.Member) string { return m.Name }

func (s *kubeconfigSecrets) add(ctx context.Context, m *realfleet.Member) (string, error) {
	content, err := m.TokenKubeconfig(m.Server())
	if err != nil {
		return "", err
	}
	secret := s.secret(m)
	secret.Labels = map[string]string{kubeconfig.DefaultKubeconfigSecretLabel: "true"}
	secret.Data = map[string][]byte{kubeconfig.DefaultKubeconfigSecretKey: content}
	return "Secret " + secretNamespace + "/" + m.Name, s.Create(ctx, secret)
}

func (s *kubeconfigSecrets) secret(m *realfleet.Member) *corev1.Secret {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = secretNamespace, m.Name
	return secret
}

func (s *kubeconfigSecrets) setAccess(ctx context.Context, m *realfleet.Member, server string) error {
	return s.replaceKubeconfig(ctx, s.secret(m), kubeconfig.DefaultKubeconfigSecretKey, m, server)
}

func (s *kubeconfigSecrets) touch(ctx context.Context, m *realfleet.Member) error {
	secret := s.secret(m)
	before := secret.DeepCopy()
	secret.Annotations = map[string]string{"example.com/updated": time.Now().Format(time.RFC3339Nano)}
	return s.Client.Patch(ctx, secret, client.MergeFrom(before))
}

func (s *kubeconfigSecrets) remove(ctx context.Context, m *realfleet.Member) error {
	return s.Client.Delete(ctx, s.secret(m))
}

func (s *kubeconfigSecrets) look() string {
	return "kubectl --kubeconfig " + s.Kubeconfig + " get secrets -n " + secretNamespace + " -l " + kubeconfig.DefaultKubeconfigSecretLabel + "=true"
}
