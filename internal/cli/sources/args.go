// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"path/filepath"
	"slices"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

// Args are flags with which a process in any folder, with any environment, does the same.
type Args struct {
	// Inventory are those that select the inventory: not the namespace and the label
	// selector, which select profiles of it.
	Inventory []string
	// Credentials are those of the credential plugins.
	Credentials []string
}

// Args returns the flags. Those of --from=file are incomplete without --file and --dir.
func (f *Flags) Args(env *command.Env) (Args, error) {
	var args Args
	if f.From != Hub {
		args.Inventory = append(args.Inventory, command.Arg("from", f.From))
	}
	if f.UsesHub() {
		hub, err := env.HubArgs()
		if err != nil {
			return Args{}, err
		}
		args.Inventory = append(args.Inventory, hub...)
	}
	switch f.From {
	case Kubeconfig:
		if f.secretLabel != kubeconfig.DefaultKubeconfigSecretLabel {
			args.Inventory = append(args.Inventory, command.Arg("secret-label", f.secretLabel))
		}
		if f.secretKey != kubeconfig.DefaultKubeconfigSecretKey {
			args.Inventory = append(args.Inventory, command.Arg("secret-key", f.secretKey))
		}
	case File:
		for flag, paths := range map[string][]string{"file": f.files, "dir": f.dirs} {
			if err := addPaths(&args.Inventory, flag, paths...); err != nil {
				return Args{}, err
			}
		}
		slices.Sort(args.Inventory)
	case Kind:
		if f.prefix != "" {
			args.Inventory = append(args.Inventory, command.Arg("kind-prefix", f.prefix))
		}
	}
	return args, f.addCredentialArgs(&args.Credentials)
}

func (f *Flags) addCredentialArgs(args *[]string) error {
	if file := f.Credentials.ProviderFile; file != "" && f.From == Hub {
		if err := addPaths(args, "clusterprofile-provider-file", file); err != nil {
			return err
		}
	}
	if err := addPaths(args, "credential-plugin-dir", f.Credentials.PluginDirs...); err != nil {
		return err
	}
	for _, allowed := range f.Credentials.AllowedCommands {
		if filepath.Base(allowed.Command) != allowed.Command { // a path, not a name
			absolute, err := filepath.Abs(allowed.Command)
			if err != nil {
				return err
			}
			allowed.Command = absolute
		}
		*args = append(*args, command.Arg("credential-plugin-allow", allowed.String()))
	}
	return nil
}

func addPaths(args *[]string, flag string, paths ...string) error {
	paths, err := absolute(paths)
	for _, path := range paths {
		*args = append(*args, command.Arg(flag, path))
	}
	return err
}

// absolute returns the paths from the root.
func absolute(paths []string) ([]string, error) {
	all := make([]string, len(paths))
	for i, path := range paths {
		var err error
		if all[i], err = filepath.Abs(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// UsesHub reports whether the inventory is in a hub, so that its profiles have a
// namespace of the hub.
func (f *Flags) UsesHub() bool { return slices.Contains([]string{Hub, Kubeconfig, ClusterAPI}, f.From) }

// HasPaths reports whether the flags name all files that are read: without --file and
// --dir, --from=file depends on the working directory and the environment.
func (f *Flags) HasPaths() bool { return f.From != File || len(f.files)+len(f.dirs) > 0 }
