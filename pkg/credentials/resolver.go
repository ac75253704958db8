// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/execplugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// Method turns a profile into an Access. It may be called concurrently.
type Method interface {
	// Resolve returns an Access to the profile's cluster. The caller releases it
	// when it is no longer used.
	Resolve(ctx context.Context, profile *inventory.Profile) (*Access, error)
}

// ChangeNotifier is implemented by Methods whose results can change although no
// profile has changed.
type ChangeNotifier interface {
	// NotifyChange has the function called after each change, until the context
	// ends. It does not block, and neither may the function. Several changes may
	// be one call.
	NotifyChange(ctx context.Context, changed func())
}

var (
	_ Method         = &Resolver{}
	_ ChangeNotifier = &Resolver{}
)

// Resolver is the Method of KEP-5339: plugins defined by a provider file. It is
// safe for concurrent use.
type Resolver struct {
	options   Options
	allowed   allowlist
	providers []providerfile.Provider // those of the options
	file      *providerfile.Watcher   // nil without one
	runner    *execplugin.Runner
	pool      *authn.Pool
	metrics   knownProviders

	closing context.Context // the lifetime of the Resolver
	stop    context.CancelFunc
}

// New returns a Resolver. Its errors name the file or option, the entry and the
// field.
func New(options Options) (*Resolver, error) {
	options, plugins, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	r := &Resolver{
		options: options,
		allowed: allowlist(options.AllowedCommands),
		runner: execplugin.NewRunner(execplugin.Options{
			PluginDirs: options.PluginDirs, Plugins: plugins,
			Timeout: options.Timeout, MaxConcurrentRuns: options.MaxConcurrentRuns,
		}),
		pool: authn.NewPool(),
	}
	check := func(provider *providerfile.Provider) error {
		return r.check(provider, slices.Sorted(maps.Keys(plugins)))
	}
	if r.providers, err = providerfile.Complete("Options", options.Providers, check); err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	r.metrics.set(r.providers)
	if options.ProviderFile != "" {
		r.file, err = providerfile.NewWatcher(options.ProviderFile, providerfile.WatcherOptions{
			Check: check, Accepted: r.accepted, Logger: options.Logger,
		})
		if err != nil {
			r.metrics.close()
			return nil, fmt.Errorf("credentials: %w", err)
		}
	}
	r.closing, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// check makes the provider's command absolute if it is a path. It refuses plugins
// that could not be found, or must not be run: the working directory alone does not
// make a program one.
func (r *Resolver) check(provider *providerfile.Provider, plugins []string) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	exec := provider.ExecConfig
	if command := exec.Command; rules.IsPath(command) && !filepath.IsAbs(command) {
		exec.Command = filepath.Join(r.options.workDir, command)
		if !r.options.isInPluginDir(exec.Command) {
			fault("execConfig.command: %q is a relative path that leads into no plugin folder: "+
				"set --credential-plugin-dir=%s (Options.PluginDirs), or use an absolute path", command, filepath.Dir(command))
		}
	}
	if needsPluginDir(provider) && len(r.options.PluginDirs) == 0 {
		fault("execConfig.command: %q is not a path, and there is no plugin folder to find it in: "+
			"set --credential-plugin-dir (Options.PluginDirs), or use an absolute path", exec.Command)
	}
	if _, allowed := r.allowed.digests(exec.Command); !allowed && exec.Command != "" {
		fault("execConfig.command: %w: %q is not among the allowed commands", ErrDenied, exec.Command)
	}
	if name := provider.Rollcall.InProcess; name != "" && !slices.Contains(plugins, name) {
		fault("rollcall.inProcess: %q is not a plugin of this program, which has %s", name, quoted(plugins))
	}
	return errors.Join(faults...)
}

func needsPluginDir(provider *providerfile.Provider) bool {
	command := provider.ExecConfig.Command
	return command != "" && !rules.IsPath(command)
}

// accepted logs which plugins are in no plugin folder. That is not an error: they
// may be installed later.
func (r *Resolver) accepted(file *providerfile.File) {
	r.metrics.set(r.providers, file.Providers)
	for i := range file.Providers {
		provider := &file.Providers[i]
		if provider.Rollcall.InProcess != "" || !needsPluginDir(provider) {
			continue
		}
		if _, err := r.runner.Locate(provider.ExecConfig.Command); err != nil {
			r.options.Logger.Info("Credential plugin missing, clusters cannot use its provider until it is installed",
				"file", r.options.ProviderFile, "provider", provider.Name, "error", err.Error())
		}
	}
}

// Resolve implements Method. It uses the first provider of the file that the profile lists
// under status.accessProviders or the deprecated status.credentialProviders. If
// the profile must not use that one, it gets no other. Resolve runs no plugin and
// reads only the provider file. Its errors are an *Error around ErrNoProvider,
// ErrInvalidProfile, ErrDenied or ErrClosed.
func (r *Resolver) Resolve(ctx context.Context, profile *inventory.Profile) (*Access, error) {
	p, err := r.plan(ctx, profile)
	if err != nil {
		return nil, err
	}
	return p.access(r, profile), nil
}

// NotifyChange implements ChangeNotifier: the function is called about a second
// after the entries of the provider file have changed, at the latest, by a
// goroutine that ends with the context or the Resolver. An invalid version of the
// file is logged and is not a change.
func (r *Resolver) NotifyChange(ctx context.Context, changed func()) {
	if r.file == nil {
		return
	}
	since := r.file.Current()
	r.pool.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(r.closing, cancel)()
		r.file.Run(ctx, since, changed)
	})
}

// Close stops running plugins, waits for them to end, and closes all connections
// of Accesses that are not released yet. Requests through these fail with
// ErrClosed from then on. It may be called more than once.
func (r *Resolver) Close() {
	r.stop()
	r.pool.Close()
	r.metrics.close()
}

// currentProviders returns those of the options, then those of the file.
func (r *Resolver) currentProviders() []providerfile.Provider {
	if r.file == nil {
		return r.providers
	}
	return slices.Concat(r.providers, r.file.File().Providers)
}

// String returns the names of the providers. It does not read the provider file.
func (r *Resolver) String() string {
	providers := r.providers
	if r.file != nil {
		providers = slices.Concat(providers, r.file.Current().Providers)
	}
	names := make([]string, len(providers))
	for i := range providers {
		names[i] = providers[i].Name
	}
	return "resolver of the providers " + quoted(names)
}

// Format implements fmt.Formatter: every verb prints what String returns, since
// the providers' arguments and variables may contain secrets.
func (r *Resolver) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, r.String()) }

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(list, ", ")
}
