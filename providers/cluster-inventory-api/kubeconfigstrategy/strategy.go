// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfigstrategy

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Interface is a strategy to get a cluster's connection. Its methods may be
// called from any goroutine.
type Interface interface {
	// GetKubeConfig returns the rest.Config for the profile's cluster. The
	// client is one of the hub.
	GetKubeConfig(ctx context.Context, cli client.Client, clp *inventory.Profile) (*rest.Config, error)

	// CustomWatches returns what else of the hub GetKubeConfig depends on. An
	// event there means that the profile which the request names has to be asked
	// for again.
	CustomWatches() []CustomWatch
}

// CustomWatch is a kind of the hub's objects that a strategy depends on.
type CustomWatch struct {
	// Object is of the kind to watch.
	Object client.Object
	// EventHandler enqueues the profiles that an object is about.
	EventHandler handler.TypedEventHandler[client.Object, reconcile.Request]
	// Opts are those of controller-runtime's builder.
	Opts []builder.WatchesOption
}

// Option chooses a strategy. Exactly one field is set.
type Option struct {
	// Secret reads kubeconfigs from Secrets of the hub.
	Secret *SecretStrategyOption

	// AccessProvider runs credential plugins (KEP-5339).
	AccessProvider *AccessProviderOption

	// CredentialsProvider is the former name of AccessProvider.
	CredentialsProvider *CredentialsProviderOption
}

// AccessProviderOption says which credential plugins there are.
type AccessProviderOption struct {
	// Provider holds the access providers, as a provider file does. Required.
	Provider *access.Config
}

// CredentialsProviderOption is the former name of AccessProviderOption.
type CredentialsProviderOption = AccessProviderOption

// SecretStrategyOption says which Secrets are read.
type SecretStrategyOption struct {
	// ConsumerName is the value of the label
	// SecretLabelKeyClusterInventoryConsumer that the Secrets carry. Required.
	ConsumerName string
}

// New returns the strategy that the option chooses. The context bounds what is
// started for it.
func New(ctx context.Context, option Option) (Interface, error) {
	chosen := 0
	for _, set := range []bool{option.Secret != nil, option.AccessProvider != nil, option.CredentialsProvider != nil} {
		if set {
			chosen++
		}
	}
	if chosen != 1 {
		return nil, errors.New("kubeconfig strategy: set exactly one of Option.Secret, Option.AccessProvider and Option.CredentialsProvider")
	}
	switch {
	case option.Secret != nil:
		return newSecretStrategy(*option.Secret)
	case option.AccessProvider != nil:
		return newAccessStrategy(ctx, *option.AccessProvider)
	default:
		return newAccessStrategy(ctx, *option.CredentialsProvider)
	}
}
