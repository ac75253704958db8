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

type accessStrategy struct {
	resolver *credentials.Resolver
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
	return &accessStrategy{resolver: resolver}, nil
}

// Resolve implements credentials.Method.
func (s *accessStrategy) Resolve(ctx context.Context, clp *inventory.Profile) (*credentials.Access, error) {
	return s.resolver.Resolve(ctx, clp)
}

// GetKubeConfig implements Interface. The plugin is run by client-go: what is
// returned has nobody who would release it.
func (s *accessStrategy) GetKubeConfig(ctx context.Context, _ client.Client, clp *inventory.Profile) (*rest.Config, error) {
	access, err := s.resolver.Resolve(ctx, clp)
	if err != nil {
		return nil, err
	}
	defer access.Release()
	return access.PortableRESTConfig(), nil
}

// CustomWatches implements Interface: profiles are all that it depends on.
func (s *accessStrategy) CustomWatches() []CustomWatch {
	return nil
}
