// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// Options say which providers a Resolver knows and how it runs their plugins.
// Where a field is zero, its default holds.
type Options struct {
	// ProviderFile is the path of a provider file (KEP-5339), see File.
	// Resolve reads it and notices when its content has changed; NotifyChange
	// tells of it. A new content that cannot be used is logged, and the old one
	// stays in force.
	ProviderFile string

	// Providers are known besides those of the file and come before them. One
	// of the same name as one of the file hides it.
	Providers []Provider

	// PluginDirs are the folders, in order, in which a command without a slash
	// is looked for. A relative one is taken from the working directory at the
	// time of New. Without any, all commands must be absolute paths.
	PluginDirs []string

	// AllowedCommands are the plugins that may be run as processes. A provider
	// with another command is refused, with all of its file: whoever writes the
	// file then does not choose the programs. Default: any.
	AllowedCommands []AllowedCommand

	// Plugins are those that run in this process, for providers that have
	// their name under InProcess. Each function is called once for every run, so
	// that no run sees the flags of another, and concurrently; what plugins
	// share (clients, for example) is in the function. A plugin must return when
	// its context ends. If it does not, it is left alone, and not run again for
	// the same purpose before it has returned.
	Plugins []func() plugin.Plugin

	// Timeout is how long a plugin may run before it is killed with all its
	// children. Default: 30 s.
	Timeout time.Duration

	// MaxConcurrentRuns is how many plugins the resolver runs at once. Others
	// wait, which does not count towards their Timeout. Default: 8.
	MaxConcurrentRuns int

	// RefreshInterval is after how long a credential that tells no expiry is
	// obtained anew, so that a rotated secret is noticed. Default: 5 min.
	RefreshInterval time.Duration

	// Logger is told of failed plugin runs and of provider files that cannot
	// be used. Default: controller-runtime's logger, named "credentials".
	Logger logr.Logger

	pluginsByName map[string]func() plugin.Plugin // of Plugins, once complete
}

const (
	defaultTimeout           = 30 * time.Second
	defaultMaxConcurrentRuns = 8
	defaultRefreshInterval   = 5 * time.Minute
)

// AddFlags registers the flags --clusterprofile-provider-file, whose name
// KEP-5339 gives, --credential-plugin-dir and --credential-plugin-allow. The
// latter two may be repeated. What the options hold already are the defaults;
// the first use of a flag replaces it.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.ProviderFile, "clusterprofile-provider-file", o.ProviderFile,
		"`path` of the file that says which credential plugins serve which access providers of a ClusterProfile")
	fs.Var(&listFlag[string]{list: &o.PluginDirs, parse: parseDir}, "credential-plugin-dir",
		"`folder` in which credential plugins without a path are looked for; may be repeated")
	fs.Var(&listFlag[AllowedCommand]{list: &o.AllowedCommands, parse: parseAllowedCommand}, "credential-plugin-allow",
		"`command` of a credential plugin that may be run, as command or command@sha256:digest; may be repeated (default any)")
}

func parseDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("must not be empty")
	}
	return dir, nil
}

// listFlag is a flag.Value that may be given several times. Its zero value must
// be usable too, since package flag makes one to find out whether a default is
// worth printing.
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

// complete checks the options and returns a copy with the defaults filled in,
// which shares nothing with the original.
func (o Options) complete() (Options, error) {
	if o.Timeout < 0 || o.MaxConcurrentRuns < 0 || o.RefreshInterval < 0 {
		return Options{}, errors.New("credentials: Timeout, MaxConcurrentRuns and RefreshInterval must not be negative")
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

	o.PluginDirs = slices.Clone(o.PluginDirs)
	for i, dir := range o.PluginDirs {
		if dir == "" {
			return Options{}, fmt.Errorf("credentials: PluginDirs[%d]: must not be empty", i)
		}
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return Options{}, fmt.Errorf("credentials: PluginDirs[%d]: %w", i, err)
		}
		o.PluginDirs[i] = absolute
	}

	o.AllowedCommands = slices.Clone(o.AllowedCommands)
	for i := range o.AllowedCommands {
		if err := o.AllowedCommands[i].fault(); err != nil {
			return Options{}, fmt.Errorf("credentials: AllowedCommands[%d]: %w", i, err)
		}
		o.AllowedCommands[i].SHA256 = slices.Clone(o.AllowedCommands[i].SHA256)
	}
	var err error
	if o.pluginsByName, err = pluginsByName(o.Plugins); err != nil {
		return Options{}, err
	}

	if err := validateProviders("Options", o.Providers); err != nil {
		return Options{}, fmt.Errorf("credentials: %w", err)
	}
	o.Providers = copyProviders(o.Providers)
	return o, nil
}
