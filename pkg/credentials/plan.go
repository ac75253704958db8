// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"fmt"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/execplugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// plan is how a profile's cluster is reached. After an error it has what was decided
// before.
type plan struct {
	providers  []providerfile.Provider // all, in the order of precedence
	provider   *providerfile.Provider
	offered    *inventory.AccessProvider // the profile's
	endpoint   *endpoint
	invocation *execplugin.Invocation
}

// plan decides. Its errors are an *Error.
func (r *Resolver) plan(ctx context.Context, profile *inventory.Profile) (p plan, err error) {
	defer func() {
		if err != nil {
			wrapped := &Error{Profile: inventory.KeyOf(profile), Err: err}
			if p.provider != nil {
				wrapped.Provider = p.provider.Name
			}
			err = wrapped
		}
	}()
	if err := ctx.Err(); err != nil {
		return p, err
	}
	if r.closing.Err() != nil {
		return p, ErrClosed
	}
	p.providers = r.currentProviders()
	if p.provider, p.offered, err = choose(p.providers, profile); err != nil {
		return p, err
	}
	if err := checkBinding(p.provider, profile); err != nil {
		return p, err
	}
	if p.endpoint, err = newEndpoint(&p.offered.Cluster, p.provider); err != nil {
		return p, err
	}
	digests, _ := r.allowed.digests(p.provider.ExecConfig.Command)
	p.invocation, err = execplugin.New(p.provider, digests, &p.offered.Cluster, p.endpoint.info())
	return p, err
}

// access returns the Access of a plan without an error.
func (p *plan) access(r *Resolver, profile *inventory.Profile) *Access {
	return newManagedAccess(r, inventory.KeyOf(profile), p.provider.Name, p.endpoint, p.invocation)
}

// choose returns the first provider of the file that the profile lists, and the profile's
// access provider of that name.
func choose(providers []providerfile.Provider, profile *inventory.Profile) (*providerfile.Provider, *inventory.AccessProvider, error) {
	offers := inventory.AccessProviders(profile)
	for i := range providers {
		for j := range offers {
			if providers[i].Name == offers[j].Name {
				return &providers[i], &offers[j], nil
			}
		}
	}
	offered := make([]string, len(offers))
	for i := range offers {
		offered[i] = offers[i].Name
	}
	known := make([]string, len(providers))
	for i := range providers {
		known[i] = providers[i].Name
	}
	if len(known) == 0 {
		return nil, nil, fmt.Errorf("%w: the profile lists access providers %s, but no provider is configured: set --clusterprofile-provider-file", ErrNoProvider, quoted(offered))
	}
	return nil, nil, fmt.Errorf("%w: the profile lists access providers %s, the provider file has %s", ErrNoProvider, quoted(offered), quoted(known))
}
