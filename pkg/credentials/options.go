// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"flag"
	"fmt"
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
	// providerfile. Resolve reads it and uses its changes at once; NotifyChange
	// reports them. A version that is invalid is logged, and the previous one is
	// kept. Default: none.
	ProviderFile string

	// Providers are used besides those of the file, and before them. One of the
	// same name as one of the file replaces it. Default: none.
	Providers []providerfile.Provider

	// PluginDirs are the folders, in order, that have the commands without a
	// path. A relative one is taken from the working directory at the time of
	// New, as is a relative command. Default: none, so that all commands must be
	// paths.
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

	// MaxConcurrentRuns is how many plugins the resolver runs at the same time.
	// Others wait, which does not count towards their Timeout. Default: 8.
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

// AddFlags registers the flags --clusterprofile-provider-file, whose name
// KEP-5339 defines, --credential-plugin-dir and --credential-plugin-allow. The
// latter two may be repeated. The defaults are the current values of the
// options; the first use of a flag replaces them.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.ProviderFile, "clusterprofile-provider-file", o.ProviderFile,
		"`path` of the file that defines the credential plugins for the access providers of ClusterProfiles")
	fs.Var(&listFlag[string]{list: &o.PluginDirs, parse: parseDir}, "credential-plugin-dir",
		"`folder` with the credential plugins that have no path; may be repeated")
	fs.Var(&listFlag[AllowedCommand]{list: &o.AllowedCommands, parse: parseAllowedCommand}, "credential-plugin-allow",
		"`command` of a credential plugin that may be run, as command or command@sha256:digest; may be repeated (default any)")
}

func parseDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("must not be empty")
	}
	return dir, nil
}

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
