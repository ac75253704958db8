// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/credentials/check"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

type list struct {
	env     *command.Env
	sources sources.Flags
	output  output.Flags
}

func newList(env *command.Env) *cobra.Command {
	o := &list{env: env}
	c := &cobra.Command{
		Use:   "list",
		Short: "List the plugins in the plugin folders and in the provider file",
		Long:  `List the plugins in the plugin folders and in the provider file, with their versions, their SHA-256 digests and the providers that use them. No plugin is run. The exit code is 1 if a plugin of the provider file is missing.`,
		Example: `  # What is installed, and what the provider file uses
  mc-credential plugins list --credential-plugin-dir /plugins --clusterprofile-provider-file providers.yaml

  # The flags that allow exactly these plugins
  mc-credential plugins list -o json | jq -r '.[] | "--credential-plugin-allow=\(.path)@sha256:\(.sha256)"'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	o.sources.AddCredentialFlags(c)
	o.output.AddFlags(c, output.Table, output.Wide, output.JSON, output.YAML)
	return c
}

// installed is a plugin.
type installed struct {
	Name      string   `json:"name"`
	Path      string   `json:"path,omitempty"`
	Version   string   `json:"version,omitempty"`
	SHA256    string   `json:"sha256,omitempty"`
	Providers []string `json:"providers,omitempty"`
	Error     string   `json:"error,omitempty"`
}

func (o *list) run() error {
	format, err := o.output.Format()
	if err != nil {
		return err
	}
	if len(o.sources.Credentials.PluginDirs) == 0 && o.sources.Credentials.ProviderFile == "" {
		return command.Usagef("set --credential-plugin-dir or --clusterprofile-provider-file")
	}
	plugins, err := o.find()
	if err != nil {
		return err
	}
	if format == output.Table || format == output.Wide {
		err = o.output.PrintTable(o.env.Out, table(plugins))
	} else {
		err = o.output.PrintValue(o.env.Out, plugins)
	}
	if err != nil {
		return err
	}
	var missing []string
	for _, p := range plugins {
		if p.Error != "" {
			missing = append(missing, fmt.Sprintf("%s (%s)", p.Name, p.Error))
		}
	}
	if len(missing) > 0 {
		return command.Exit(command.ExitFailed, errors.New(strings.Join(missing, ", ")))
	}
	return nil
}

// find returns the plugins of the folders, in their order, and those of the provider file.
func (o *list) find() ([]*installed, error) {
	plugins := []*installed{}
	for _, dir := range o.sources.Credentials.PluginDirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("plugin folder: %w", err)
		}
		for _, entry := range entries {
			path, err := filepath.Abs(filepath.Join(dir, entry.Name()))
			if err != nil {
				return nil, err
			}
			if info, err := os.Stat(path); err == nil && isProgram(info) {
				plugins = append(plugins, describe(path))
			}
		}
	}
	if o.sources.Credentials.ProviderFile == "" {
		return plugins, nil
	}
	file, err := providerfile.Load(o.sources.Credentials.ProviderFile)
	if err != nil {
		return nil, err
	}
	for i := range file.Providers {
		provider := &file.Providers[i]
		if provider.ExecConfig == nil {
			continue // a plugin in the process of the controller
		}
		o.use(&plugins, provider.Name, provider.ExecConfig.Command)
	}
	return plugins, nil
}

// use adds a provider to its plugin: the first one of that name in the folders, or the
// file of that path.
func (o *list) use(plugins *[]*installed, provider, program string) {
	is := func(p *installed) bool { return p.Name == program }
	path := program
	if strings.ContainsRune(program, filepath.Separator) {
		path, _ = filepath.Abs(program)
		is = func(p *installed) bool { return p.Path == path }
	}
	i := slices.IndexFunc(*plugins, is)
	if i < 0 {
		i = len(*plugins)
		used := &installed{Name: program, Error: "not in a plugin folder"}
		if path != program || filepath.IsAbs(path) {
			used = describe(path)
		}
		*plugins = append(*plugins, used)
	}
	(*plugins)[i].Providers = append((*plugins)[i].Providers, provider)
}

func describe(path string) *installed {
	p := &installed{Name: filepath.Base(path), Path: path, Version: check.PluginVersion(path)}
	var err error
	if p.SHA256, err = check.PluginDigest(path); errors.Is(err, fs.ErrNotExist) {
		p.Error = path + " does not exist"
	} else if err != nil {
		p.Error = err.Error()
	}
	return p
}

func isProgram(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 != 0 }

func table(plugins []*installed) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name"}, {Name: "Version"}, {Name: "Providers"}, {Name: "Path"}, {Name: "SHA256", Priority: 1},
	}}
	for _, p := range plugins {
		table.Rows = append(table.Rows, metav1.TableRow{Cells: []any{
			p.Name, cmp.Or(p.Version, "-"), cmp.Or(strings.Join(p.Providers, ","), "-"), cmp.Or(p.Path, "-"), cmp.Or(p.SHA256, "-"),
		}})
	}
	return table
}
