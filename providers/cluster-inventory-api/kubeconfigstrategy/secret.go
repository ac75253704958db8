// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfigstrategy

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
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
	resolver *kubeconfig.Resolver
}

func newSecretStrategy(ctx context.Context, option SecretStrategyOption) (*secretStrategy, error) {
	if option.ConsumerName == "" {
		return nil, errors.New("kubeconfig strategy: SecretStrategyOption.ConsumerName must not be empty")
	}
	resolver, err := kubeconfig.New(option.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig strategy: SecretStrategyOption.Kubeconfig: %w", err)
	}
	context.AfterFunc(ctx, resolver.Close)
	return &secretStrategy{consumer: option.ConsumerName, resolver: resolver}, nil
}

// GetKubeConfig implements Interface. client-go runs commands, as the caller cannot
// release the config.
func (s *secretStrategy) GetKubeConfig(ctx context.Context, cli client.Client, clp *inventory.Profile) (*rest.Config, error) {
	access, err := s.GetAccess(ctx, cli, clp)
	if err != nil {
		return nil, err
	}
	defer access.Release()
	return access.PortableRESTConfig(), nil
}

// GetAccess returns the Access of the profile's cluster, which the caller releases. The
// Secret is in the profile's namespace.
func (s *secretStrategy) GetAccess(ctx context.Context, cli client.Client, clp *inventory.Profile) (*credentials.Access, error) {
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
	access, err := s.access(key, &secrets.Items[0])
	if err != nil {
		return nil, fmt.Errorf("cluster profile %s: %w", key, err)
	}
	return access, nil
}

// access returns the Access of the current context of a Secret's kubeconfig.
func (s *secretStrategy) access(key inventory.Key, secret *corev1.Secret) (*credentials.Access, error) {
	origin := "Secret " + client.ObjectKeyFromObject(secret).String()
	data, ok := secret.Data[SecretDataKeyKubeConfig]
	if !ok {
		return nil, fmt.Errorf("%s: has no key %q", origin, SecretDataKeyKubeConfig)
	}
	parsed, err := kubeconfig.Parse(origin, "", data)
	if err != nil {
		return nil, err
	}
	current, err := parsed.Context("")
	if err != nil {
		return nil, err
	}
	return s.resolver.Access(key, current, nil)
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
