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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

const (
	// SecretLabelKeyClusterInventoryConsumer is the label of a Secret that names
	// who it is for.
	SecretLabelKeyClusterInventoryConsumer = "x-k8s.io/cluster-inventory-consumer"

	// SecretLabelKeyClusterProfile is the label of a Secret that names the
	// profile, in the Secret's own namespace, whose cluster it opens.
	SecretLabelKeyClusterProfile = "x-k8s.io/cluster-profile"

	// SecretDataKeyKubeConfig is the key under which a Secret has the kubeconfig.
	SecretDataKeyKubeConfig = "Config"
)

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
	err := cli.List(ctx, secrets, client.InNamespace(clp.Namespace), client.MatchingLabels{
		SecretLabelKeyClusterInventoryConsumer: s.consumer,
		SecretLabelKeyClusterProfile:           clp.Name,
	})
	if err != nil {
		return nil, fmt.Errorf("cluster profile %s: cannot list the Secrets with its kubeconfig: %w", key, err)
	}
	switch len(secrets.Items) {
	case 1:
	case 0:
		return nil, fmt.Errorf("cluster profile %s: no Secret with its kubeconfig for consumer %q", key, s.consumer)
	default:
		return nil, fmt.Errorf("cluster profile %s: %d Secrets with its kubeconfig for consumer %q, want one", key, len(secrets.Items), s.consumer)
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

// parse reads a kubeconfig that comes from the hub. It must stand by itself:
// whoever writes Secrets must not have this process run commands or read files.
func parse(data []byte) (*rest.Config, error) {
	file, err := clientcmd.Load(data)
	if err != nil {
		// The error may quote the text, and that has a secret in it.
		return nil, errors.New("its kubeconfig cannot be read")
	}
	for name, user := range file.AuthInfos {
		switch {
		case user.Exec != nil, user.AuthProvider != nil:
			return nil, fmt.Errorf("user %q of its kubeconfig runs a command or a plugin, which is not allowed", name)
		case user.TokenFile != "", user.ClientCertificate != "", user.ClientKey != "":
			return nil, fmt.Errorf("user %q of its kubeconfig refers to a file, which is not allowed", name)
		}
	}
	for name, cluster := range file.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, fmt.Errorf("cluster %q of its kubeconfig refers to a file, which is not allowed", name)
		}
		if !isProxy(cluster.ProxyURL) {
			// Said here, since client-go would quote it, and a password may be in it.
			return nil, fmt.Errorf("the proxy-url of cluster %q of its kubeconfig is not an http, https or socks5 URL", name)
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("its kubeconfig cannot be used: %w", err)
	}
	return config, nil
}

// isProxy tells whether client-go can use the URL of a proxy, or there is none.
func isProxy(text string) bool {
	u, err := url.Parse(text)
	return text == "" || err == nil && slices.Contains([]string{"http", "https", "socks5"}, u.Scheme)
}

// CustomWatches implements Interface: the Secrets for this consumer.
func (s *secretStrategy) CustomWatches() []CustomWatch {
	return []CustomWatch{{
		Object: &corev1.Secret{},
		EventHandler: handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			name := obj.GetLabels()[SecretLabelKeyClusterProfile]
			if name == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
		}),
		Opts: []builder.WatchesOption{builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return obj.GetLabels()[SecretLabelKeyClusterInventoryConsumer] == s.consumer
		}))},
	}}
}
