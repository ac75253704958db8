// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfigstrategy

import (
	"context"
	"errors"
	"flag"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Interface is a strategy to connect clusters. Its methods may be called
// concurrently.
type Interface interface {
	// GetKubeConfig returns the rest.Config of the profile's cluster. The client
	// reads the hub.
	GetKubeConfig(ctx context.Context, cli client.Client, clp *inventory.Profile) (*rest.Config, error)

	// CustomWatches returns the objects of the hub that GetKubeConfig depends on.
	// After an event the result for the profile in the request may differ.
	CustomWatches() []CustomWatch
}

// CustomWatch is a watch of objects that a strategy depends on.
type CustomWatch struct {
	// Object is an object of the kind to watch.
	Object client.Object
	// EventHandler enqueues the profiles that depend on an object.
	EventHandler handler.TypedEventHandler[client.Object, reconcile.Request]
	// Opts are for programs that pass the watch to controller-runtime's builder. The
	// strategies of this package have none: their EventHandler filters.
	Opts []builder.WatchesOption
}

// Option selects a strategy. Exactly one field must be set.
type Option struct {
	// Secret reads kubeconfigs from Secrets of the hub.
	Secret *SecretStrategyOption

	// AccessProvider runs credential plugins (KEP-5339).
	AccessProvider *AccessProviderOption

	// CredentialsProvider is the former name of AccessProvider.
	CredentialsProvider *CredentialsProviderOption
}

// AccessProviderOption configures the credential plugins.
type AccessProviderOption struct {
	// Provider is the content of a provider file. Required.
	Provider *access.Config

	// Options are those of the plugins, such as the folders that have them. Its
	// providers and provider file are used besides Provider. Default: none.
	Options credentials.Options
}

// AddFlags registers the flags --credential-plugin-dir and --credential-plugin-allow
// of the Options. It does not register --clusterprofile-provider-file, which programs
// that set Provider have already.
func (o *AccessProviderOption) AddFlags(fs *flag.FlagSet) { o.Options.AddPluginFlags(fs) }

// CredentialsProviderOption is the former name of AccessProviderOption.
type CredentialsProviderOption = AccessProviderOption

// SecretStrategyOption selects the Secrets.
type SecretStrategyOption struct {
	// ConsumerName is the value of the Secrets' label
	// SecretLabelKeyClusterInventoryConsumer. Required.
	ConsumerName string

	// Kubeconfig defines what the kubeconfigs may do. By default they run no command, read
	// no file, and cannot turn off the verification of certificates. Files are read when
	// the Secret or the profile changes, and when the cluster responds with 401.
	Kubeconfig kubeconfig.Options
}

// New returns the strategy of the option. It runs plugins and commands until the context
// ends.
func New(ctx context.Context, option Option) (Interface, error) {
	count := 0
	for _, set := range []bool{option.Secret != nil, option.AccessProvider != nil, option.CredentialsProvider != nil} {
		if set {
			count++
		}
	}
	if count != 1 {
		return nil, errors.New("kubeconfig strategy: set exactly one of Option.Secret, Option.AccessProvider and Option.CredentialsProvider")
	}
	switch {
	case option.Secret != nil:
		return newSecretStrategy(ctx, *option.Secret)
	case option.AccessProvider != nil:
		return newAccessStrategy(ctx, *option.AccessProvider)
	default:
		return newAccessStrategy(ctx, *option.CredentialsProvider)
	}
}

// accessStrategy is the strategy that runs credential plugins. It is a
// credentials.Method.
type accessStrategy struct {
	*credentials.Resolver
}

var _ credentials.Method = &accessStrategy{}

func newAccessStrategy(ctx context.Context, option AccessProviderOption) (*accessStrategy, error) {
	if option.Provider == nil {
		return nil, errors.New("kubeconfig strategy: AccessProviderOption.Provider must be set")
	}
	options := option.Options
	options.Providers = slices.Clone(options.Providers)
	for _, p := range option.Provider.Providers {
		options.Providers = append(options.Providers, providerfile.Provider{
			Name:                        p.Name,
			ExecConfig:                  p.ExecConfig,
			ProfileSourcedCLIArgsPolicy: providerfile.ProfileSourcedCLIArgsPolicy(p.ProfileSourcedCLIArgsPolicy),
			ProfileSourcedEnvVarsPolicy: providerfile.ProfileSourcedEnvVarsPolicy(p.ProfileSourcedEnvVarsPolicy),
		})
	}
	resolver, err := credentials.New(options)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, resolver.Close)
	return &accessStrategy{resolver}, nil
}

// GetKubeConfig implements Interface. client-go runs the plugin, as the caller
// cannot release the config.
func (s *accessStrategy) GetKubeConfig(ctx context.Context, _ client.Client, clp *inventory.Profile) (*rest.Config, error) {
	access, err := s.Resolve(ctx, clp)
	if err != nil {
		return nil, err
	}
	defer access.Release()
	return access.PortableRESTConfig(), nil
}

// CustomWatches implements Interface: it depends on nothing but profiles.
func (s *accessStrategy) CustomWatches() []CustomWatch {
	return nil
}
