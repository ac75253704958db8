// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfigstrategy

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	// SecretLabelKeyClusterInventoryConsumer is the label of a Secret with the name
	// of its consumer.
	SecretLabelKeyClusterInventoryConsumer = "x-k8s.io/cluster-inventory-consumer"

	// SecretLabelKeyClusterProfile is the label of a Secret with the name of the
	// profile, in the same namespace, of its cluster.
	SecretLabelKeyClusterProfile = "x-k8s.io/cluster-profile"

	// SecretDataKeyKubeConfig is the key of the kubeconfig in a Secret.
	SecretDataKeyKubeConfig = "Config"
)

// secretStrategy is the strategy that reads kubeconfigs from Secrets.
type secretStrategy struct {
	consumer string
}

func newSecretStrategy(option SecretStrategyOption) (*secretStrategy, error) {
	if option.ConsumerName == "" {
		return nil, errors.New("kubeconfig strategy: SecretStrategyOption.ConsumerName must not be empty")
	}
	return &secretStrategy{consumer: option.ConsumerName}, nil
}

// GetKubeConfig implements Interface. The Secret is in the profile's namespace.
func (s *secretStrategy) GetKubeConfig(ctx context.Context, cli client.Client, clp *inventory.Profile) (*rest.Config, error) {
	key := inventory.KeyOf(clp)
	secrets := &corev1.SecretList{}
	if err := cli.List(ctx, secrets, client.InNamespace(clp.Namespace), client.MatchingLabels{
		SecretLabelKeyClusterInventoryConsumer: s.consumer,
		SecretLabelKeyClusterProfile:           clp.Name,
	}); err != nil {
		return nil, fmt.Errorf("cluster profile %s: cannot list Secrets: %w", key, err)
	}
	switch len(secrets.Items) {
	case 1:
	case 0:
		return nil, fmt.Errorf("cluster profile %s: no Secret with a kubeconfig for consumer %q", key, s.consumer)
	default:
		return nil, fmt.Errorf("cluster profile %s: %d Secrets with a kubeconfig for consumer %q, want one", key, len(secrets.Items), s.consumer)
	}
	secret := &secrets.Items[0]
	data, ok := secret.Data[SecretDataKeyKubeConfig]
	if !ok {
		return nil, fmt.Errorf("cluster profile %s: Secret %s has no key %q", key, secret.Name, SecretDataKeyKubeConfig)
	}
	config, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("cluster profile %s: Secret %s: %w", key, secret.Name, err)
	}
	config.QPS = -1
	return config, nil
}

// parse reads a kubeconfig of the hub. It must be self-contained: authors of Secrets
// must not make this process run commands or read files.
func parse(data []byte) (*rest.Config, error) {
	file, err := clientcmd.Load(data)
	if err != nil {
		// The error may quote the text, which contains secrets.
		return nil, errors.New("invalid kubeconfig")
	}
	for name, user := range file.AuthInfos {
		switch {
		case user.Exec != nil, user.AuthProvider != nil:
			return nil, fmt.Errorf("user %q of the kubeconfig runs a command or a plugin, which is not allowed", name)
		case user.TokenFile != "", user.ClientCertificate != "", user.ClientKey != "":
			return nil, fmt.Errorf("user %q of the kubeconfig refers to a file, which is not allowed", name)
		}
	}
	for name, cluster := range file.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, fmt.Errorf("cluster %q of the kubeconfig refers to a file, which is not allowed", name)
		}
		if !isProxy(cluster.ProxyURL) {
			// client-go's error would quote the URL, which may contain a password.
			return nil, fmt.Errorf("the proxy-url of cluster %q of the kubeconfig is not an http, https or socks5 URL", name)
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("invalid kubeconfig: %w", err)
	}
	return config, nil
}

// isProxy reports whether the text is the URL of a proxy that client-go supports, or
// empty.
func isProxy(text string) bool {
	u, err := url.Parse(text)
	return text == "" || err == nil && slices.Contains([]string{"http", "https", "socks5"}, u.Scheme)
}

// CustomWatches implements Interface: the Secrets for this consumer.
func (s *secretStrategy) CustomWatches() []CustomWatch {
	return []CustomWatch{{
		Object: &corev1.Secret{},
		EventHandler: handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			profile := obj.GetLabels()[SecretLabelKeyClusterProfile]
			if profile == "" || obj.GetLabels()[SecretLabelKeyClusterInventoryConsumer] != s.consumer {
				return nil
			}
			return []reconcile.Request{{NamespacedName: inventory.Key{Namespace: obj.GetNamespace(), Name: profile}}}
		}),
	}}
}
