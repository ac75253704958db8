// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfigstrategy

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

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
	var options credentials.Options
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
