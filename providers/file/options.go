// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
)

// DefaultKubeconfigGlobs is the default of Options.KubeconfigGlobs.
var DefaultKubeconfigGlobs = []string{
	"kubeconfig.yaml",
	"kubeconfig.yml",
	"*.kubeconfig",
	"*.kubeconfig.yaml",
	"*.kubeconfig.yml",
}

// defaultSeparator is the default of Options.Separator.
const defaultSeparator = "+"

// Options configure a Provider. The zero value is usable.
type Options struct {
	// KubeconfigFiles are paths of kubeconfig files. They need not exist. Default, if
	// KubeconfigDirs is empty too: those of the variable KUBECONFIG, and ~/.kube/config.
	KubeconfigFiles []string

	// KubeconfigDirs are folders with kubeconfig files. They need not exist. Default, if
	// KubeconfigFiles is empty too: the working directory.
	KubeconfigDirs []string

	// KubeconfigGlobs are patterns, as of path/filepath.Match, of the files in
	// KubeconfigDirs. One with a slash matches files in folders below. Defaults to
	// DefaultKubeconfigGlobs.
	KubeconfigGlobs []string

	// Separator is between the path and the context in the name of a cluster. Defaults
	// to "+".
	Separator string

	// ClusterOptions are applied before Connection.ClusterOptions.
	ClusterOptions []cluster.Option

	// Exec configures how commands of users with exec are run. If AllowedCommands is
	// set, others are refused. Commands without a slash are looked up in PluginDirs, then
	// in PATH. ProviderFile, Providers and Plugins must not be set.
	Exec credentials.Options

	// Connection configures how each cluster is connected and monitored.
	Connection fleet.ConnectionOptions
}

func (o *Options) complete() error {
	if len(o.KubeconfigFiles) == 0 && len(o.KubeconfigDirs) == 0 {
		if err := o.setDefaultPaths(); err != nil {
			return err
		}
	}
	if len(o.KubeconfigGlobs) == 0 {
		o.KubeconfigGlobs = DefaultKubeconfigGlobs
	}
	o.KubeconfigFiles, o.KubeconfigDirs = slices.Clone(o.KubeconfigFiles), slices.Clone(o.KubeconfigDirs)
	o.KubeconfigGlobs = slices.Clone(o.KubeconfigGlobs)
	if slices.Contains(o.KubeconfigFiles, "") || slices.Contains(o.KubeconfigDirs, "") {
		return errors.New("a path must not be empty")
	}
	for _, glob := range o.KubeconfigGlobs {
		if _, err := filepath.Match(glob, ""); err != nil || glob == "" || filepath.IsAbs(glob) {
			return fmt.Errorf("%q is not a pattern of file names", glob)
		}
	}
	o.Separator = cmp.Or(o.Separator, defaultSeparator)
	return nil
}

func (o *Options) setDefaultPaths() error {
	for _, path := range filepath.SplitList(os.Getenv("KUBECONFIG")) {
		if path != "" {
			o.KubeconfigFiles = append(o.KubeconfigFiles, path)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		o.KubeconfigFiles = append(o.KubeconfigFiles, filepath.Join(home, ".kube", "config"))
	}
	dir, err := os.Getwd()
	o.KubeconfigDirs = []string{dir}
	return err
}

// connection returns Connection with the options of the top level.
func (o *Options) connection() fleet.ConnectionOptions {
	connection := o.Connection
	connection.ClusterOptions = slices.Concat(o.ClusterOptions, connection.ClusterOptions)
	return connection
}
