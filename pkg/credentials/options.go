// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// Options configure a Resolver. Each field has a default.
type Options struct {
	// ProviderFile is the path of a provider file (KEP-5339), see package
	// providerfile. Resolve reads it, and NotifyChange reports its changes. A
	// version is used when the file has not changed for 0.4 s, also by New, which
	// waits for that. One that is invalid is logged, and the previous one is kept.
	// Default: none.
	ProviderFile string

	// Providers are used besides those of the file, and before them. One of the
	// same name as one of the file replaces it. Default: none.
	Providers []providerfile.Provider

	// PluginDirs are the folders, in order, that have the commands without a
	// path. A command that is a relative path must lead into one of them. Relative
	// folders and commands start at the working directory at the time of New.
	// Default: none, so that all commands must be absolute paths.
	PluginDirs []string

	// AllowedCommands are the plugins that may be run as processes. A provider
	// with another command is refused, together with its file: the author of the
	// file then does not choose the programs. Default: any.
	AllowedCommands []AllowedCommand

	// Plugins are those in this process, for providers that have their name under
	// rollcall.inProcess. Each function is called once for every run, so that no
	// run sees the flags of another, and concurrently; what plugins share, such
	// as clients, is in the function. A plugin must return when its context ends.
	// If it does not, it is not run again for the same purpose until it has
	// returned. Default: none.
	Plugins []func() plugin.Plugin

	// Timeout is how long a plugin may run before it is killed with all its
	// children. Default: 30 s.
	Timeout time.Duration

	// MaxConcurrentRuns is how many plugins the resolver runs at the same time
	// for each provider, so that none waits for the plugin of another. Others
	// wait, which does not count towards their Timeout: those that have succeeded
	// before come first, and those that hung the last time come last. So that
	// plugins which hang leave slots for the rest, first runs get three quarters
	// of the slots, and runs after one that hung a quarter, or half while the
	// previous credential is valid; each at least one. With fewer than 4, not all
	// of them differ. Default: 8.
	MaxConcurrentRuns int

	// RefreshInterval is after how long a credential without an expiry is
	// renewed, so that a rotated secret is noticed. Default: 5 min.
	RefreshInterval time.Duration

	// Logger gets failed plugin runs and invalid provider files. Default:
	// controller-runtime's logger, named "credentials".
	Logger logr.Logger

	workDir string // at the time of New
}

const (
	defaultTimeout           = 30 * time.Second
	defaultMaxConcurrentRuns = 8
	defaultRefreshInterval   = 5 * time.Minute
)

// AddFlags registers the flag --clusterprofile-provider-file, whose name KEP-5339
// defines, and those of AddPluginFlags. The defaults are the current values of the
// options; the first use of a flag replaces them.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.ProviderFile, "clusterprofile-provider-file", o.ProviderFile,
		"`path` of the file that defines the credential plugins for the access providers of ClusterProfiles")
	o.AddPluginFlags(fs)
}

// AddPluginFlags registers the flags --credential-plugin-dir and
// --credential-plugin-allow, for programs that have a flag for the provider file
// already. Both may be repeated. The defaults are as with AddFlags.
func (o *Options) AddPluginFlags(fs *flag.FlagSet) {
	fs.Var(&listFlag[string]{list: &o.PluginDirs, parse: parseDir}, "credential-plugin-dir",
		"`folder` with the credential plugins whose commands are not absolute paths; may be repeated")
	fs.Var(&listFlag[AllowedCommand]{list: &o.AllowedCommands, parse: parseAllowedCommand}, "credential-plugin-allow",
		"`command` of a credential plugin that may be run, as command or command@sha256:digest; may be repeated (default any)")
}

func parseDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("must not be empty")
	}
	return dir, nil
}

// String returns the options without the arguments and variables of the providers,
// which may contain secrets.
func (o Options) String() string {
	return fmt.Sprintf("provider file %q, providers %v, plugin folders %q, allowed commands %v, %d plugins in this process, "+
		"timeout %s, %d concurrent runs, refresh interval %s",
		o.ProviderFile, o.Providers, o.PluginDirs, o.AllowedCommands, len(o.Plugins), o.Timeout, o.MaxConcurrentRuns, o.RefreshInterval)
}

// Format implements fmt.Formatter: every verb prints what String returns.
func (o Options) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, o.String()) }

// listFlag is a flag.Value that may be repeated. Its zero value must be usable
// too, since package flag creates one to compare it with a default.
type listFlag[T any] struct {
	list  *[]T
	parse func(string) (T, error)
	set   bool
}

func (l *listFlag[T]) String() string {
	if l.list == nil || len(*l.list) == 0 {
		return ""
	}
	return fmt.Sprint(*l.list)
}

func (l *listFlag[T]) Set(text string) error {
	value, err := l.parse(text)
	if err != nil {
		return err
	}
	if !l.set {
		*l.list, l.set = nil, true
	}
	*l.list = append(*l.list, value)
	return nil
}

// complete returns a copy with the defaults, which shares nothing with the
// original but Providers, and the Plugins by name.
func (o Options) complete() (_ Options, plugins map[string]func() plugin.Plugin, err error) {
	fail := func(format string, args ...any) (Options, map[string]func() plugin.Plugin, error) {
		return Options{}, nil, fmt.Errorf(format, args...)
	}
	if o.Timeout < 0 || o.MaxConcurrentRuns < 0 || o.RefreshInterval < 0 {
		return fail("Timeout, MaxConcurrentRuns and RefreshInterval must not be negative")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxConcurrentRuns == 0 {
		o.MaxConcurrentRuns = defaultMaxConcurrentRuns
	}
	if o.RefreshInterval == 0 {
		o.RefreshInterval = defaultRefreshInterval
	}
	if o.Logger.IsZero() {
		o.Logger = log.Log.WithName("credentials")
	}
	if o.workDir, err = os.Getwd(); err != nil {
		return fail("working directory: %w", err)
	}
	o.PluginDirs = slices.Clone(o.PluginDirs)
	for i, dir := range o.PluginDirs {
		if dir == "" {
			return fail("PluginDirs[%d]: must not be empty", i)
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(o.workDir, dir)
		}
		o.PluginDirs[i] = filepath.Clean(dir)
	}
	o.AllowedCommands = slices.Clone(o.AllowedCommands)
	for i := range o.AllowedCommands {
		if err := o.AllowedCommands[i].complete(o.workDir); err != nil {
			return fail("AllowedCommands[%d]: %w", i, err)
		}
	}
	if plugins, err = pluginsByName(o.Plugins); err != nil {
		return fail("%w", err)
	}
	return o, plugins, nil
}

// isInPluginDir reports whether the absolute path is in a plugin folder, or in a
// folder below.
func (o *Options) isInPluginDir(path string) bool {
	return slices.ContainsFunc(o.PluginDirs, func(dir string) bool {
		relative, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(relative)
	})
}

// pluginsByName calls each function once, for the name.
func pluginsByName(plugins []func() plugin.Plugin) (map[string]func() plugin.Plugin, error) {
	byName := make(map[string]func() plugin.Plugin, len(plugins))
	for i, newPlugin := range plugins {
		if newPlugin == nil {
			return nil, fmt.Errorf("option Plugins[%d]: must not be nil", i)
		}
		p := newPlugin()
		if p == nil {
			return nil, fmt.Errorf("option Plugins[%d]: returns no plugin", i)
		}
		name := p.Name()
		if name == "" {
			return nil, fmt.Errorf("option Plugins[%d]: its name must not be empty", i)
		}
		if byName[name] != nil {
			return nil, fmt.Errorf("option Plugins[%d]: the name %q is already used by an earlier one", i, name)
		}
		byName[name] = newPlugin
	}
	return byName, nil
}
