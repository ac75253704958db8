// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Method turns a profile into an Access. It may be called concurrently.
type Method interface {
	// Resolve returns how to reach the profile's cluster. The caller releases
	// the Access when it is no longer used.
	Resolve(ctx context.Context, profile *inventory.Profile) (*Access, error)
}

var _ Method = &Resolver{}

// Resolver is the Method of KEP-5339: plugins by a provider file. It is safe for
// concurrent use.
type Resolver struct {
	options Options
	file    *providerFile // nil without one
	pool    *authn.Pool
	runner  *runner
	known   knownProviders
}

// New returns a Resolver. Its errors name the file or option, the entry and
// the field that is at fault.
func New(options Options) (*Resolver, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	r := &Resolver{options: options}
	if err := r.checkPlugins("Options", options.Providers); err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	if options.ProviderFile != "" {
		r.file = &providerFile{
			path:    options.ProviderFile,
			check:   r.checkPlugins,
			inForce: func(fromFile []Provider) { r.known.set(r.options.Providers, fromFile) },
			warn:    r.warnOfMissing,
			log:     options.Logger,
		}
		if err := r.file.load(); err != nil {
			return nil, fmt.Errorf("credentials: %w", err)
		}
	}
	if r.file == nil {
		r.known.set(options.Providers)
	}
	r.pool, r.runner = authn.NewPool(), newRunner(&options)
	return r, nil
}

// checkPlugins refuses plugins that could not be found anywhere or must not be
// run.
func (r *Resolver) checkPlugins(place string, providers []Provider) error {
	var faults []error
	for i := range providers {
		provider := &providers[i]
		command := provider.exec().Command
		fault := func(format string, args ...any) {
			faults = append(faults, entryError(place, providers, i, fmt.Errorf(format, args...)))
		}
		if len(r.options.PluginDirs) == 0 && provider.needsPluginDir() {
			fault("execConfig.command: %q is not an absolute path and there are no plugin folders (--credential-plugin-dir)", command)
		}
		if _, allowed := allowlist(r.options.AllowedCommands).digests(command); !allowed && command != "" {
			fault("execConfig.command: %w: %q is not among the allowed commands", ErrDenied, command)
		}
		if provider.InProcess != "" && r.options.pluginsByName[provider.InProcess] == nil {
			fault("inProcess: %q is not a plugin of this program, which has %s",
				provider.InProcess, names(slices.Sorted(maps.Keys(r.options.pluginsByName))))
		}
	}
	return errors.Join(faults...)
}

// warnOfMissing logs which plugins are in no plugin folder. That is no fault: they
// may come later.
func (r *Resolver) warnOfMissing(providers []Provider) {
	for i := range providers {
		if provider := &providers[i]; provider.InProcess == "" && provider.needsPluginDir() {
			if _, err := locate(r.options.PluginDirs, provider.exec().Command); err != nil {
				r.options.Logger.Info("Plugin of a provider is missing, clusters cannot use the provider until it is there",
					"file", r.options.ProviderFile, "provider", provider.Name, "reason", err.Error())
			}
		}
	}
}

// Resolve implements Method. It takes the first provider that the profile
// lists under status.accessProviders or the deprecated
// status.credentialProviders. It runs no plugin and reads nothing but the
// provider file. Its errors are an *Error around ErrNoProvider, ErrInvalidProfile,
// ErrDenied or ErrClosed.
func (r *Resolver) Resolve(ctx context.Context, profile *inventory.Profile) (*Access, error) {
	key := inventory.KeyOf(profile)
	if err := ctx.Err(); err != nil {
		return nil, &Error{Profile: key, Err: err}
	}
	if r.pool.IsClosed() {
		return nil, &Error{Profile: key, Err: ErrClosed}
	}
	provider, offered, err := choose(r.providers(), profile)
	if err != nil {
		return nil, &Error{Profile: key, Err: err}
	}
	e, err := newEndpoint(&offered.Cluster, provider)
	if err != nil {
		return nil, &Error{Profile: key, Provider: provider.Name, Err: err}
	}
	digests, _ := allowlist(r.options.AllowedCommands).digests(provider.exec().Command)
	i, err := newInvocation(provider, digests, &offered.Cluster, e)
	if err != nil {
		return nil, &Error{Profile: key, Provider: provider.Name, Err: err}
	}
	return newManagedAccess(r, key, provider.Name, e, i), nil
}

// Close stops running plugins, waits for them to end, and closes all connections
// of accesses that are not released yet. Requests through these accesses fail
// with ErrClosed from then on. It may be called more than once.
func (r *Resolver) Close() {
	r.pool.Close()
	r.known.close()
}

// providers returns those given from Go, then those of the file.
func (r *Resolver) providers() []Provider {
	if r.file == nil {
		return r.options.Providers
	}
	fromFile := r.file.providers()
	all := make([]Provider, 0, len(r.options.Providers)+len(fromFile))
	return append(append(all, r.options.Providers...), fromFile...)
}

// choose returns the first provider that the profile lists, and the profile's
// access provider of that name.
func choose(providers []Provider, profile *inventory.Profile) (*Provider, *inventory.AccessProvider, error) {
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
		return nil, nil, fmt.Errorf("%w: the profile offers %s, none is known (--clusterprofile-provider-file)", ErrNoProvider, names(offered))
	}
	return nil, nil, fmt.Errorf("%w: the profile offers %s, known are %s", ErrNoProvider, names(offered), names(known))
}

func names(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	quoted := make([]string, len(list))
	for i, name := range list {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ")
}
