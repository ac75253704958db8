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
}

const (
	defaultTimeout           = 30 * time.Second
	defaultMaxConcurrentRuns = 8
	defaultRefreshInterval   = 5 * time.Minute
)

// AddFlags registers the flags --clusterprofile-provider-file, whose name
// KEP-5339 gives, and --credential-plugin-dir, which may be repeated. What the
// options hold already are the defaults; the first --credential-plugin-dir
// replaces it.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.ProviderFile, "clusterprofile-provider-file", o.ProviderFile,
		"`path` of the file that says which credential plugins serve which access providers of a ClusterProfile")
	fs.Var(&dirList{dirs: &o.PluginDirs}, "credential-plugin-dir",
		"`folder` in which credential plugins without a path are looked for; may be repeated")
}

// dirList is a flag.Value. Its zero value must be usable too, since package
// flag makes one to find out whether a default is worth printing.
type dirList struct {
	dirs *[]string
	set  bool
}

func (l *dirList) String() string {
	if l.dirs == nil || len(*l.dirs) == 0 {
		return ""
	}
	return fmt.Sprint(*l.dirs)
}

func (l *dirList) Set(dir string) error {
	if dir == "" {
		return errors.New("must not be empty")
	}
	if !l.set {
		*l.dirs, l.set = nil, true
	}
	*l.dirs = append(*l.dirs, dir)
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

	if err := validateProviders("Options", o.Providers); err != nil {
		return Options{}, fmt.Errorf("credentials: %w", err)
	}
	o.Providers = copyProviders(o.Providers)
	return o, nil
}
