// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/output"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/plugintest"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

type verify struct {
	env     *command.Env
	sources sources.Flags
	output  output.Flags

	program, server, config string
	timeout                 time.Duration
}

func newVerify(env *command.Env) *cobra.Command {
	o := &verify{env: env}
	c := &cobra.Command{
		Use:   "verify PROFILE | verify --program PLUGIN [-- ARG...]",
		Short: "Put a plugin through the conformance suite",
		Long: `Put a plugin through the conformance suite: the plugin that a controller would run for a profile, or one with given arguments.

The plugin is run some thirty times, with different requests. It must be able to obtain a credential.`,
		Example: `  # The plugin that opens the cluster eu
  mc-credential plugins verify eu --clusterprofile-provider-file providers.yaml

  # A plugin that no profile uses yet
  mc-credential plugins verify --program bin/my-plugin --server https://eu.example.com:6443 --config '{"clusterName":"eu"}' -- --region=eu`,
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	o.sources.AddFlags(c)
	o.output.AddFlags(c, output.Table, output.JSON, output.YAML)
	c.Flags().StringVar(&o.program, "program", "", "The plugin: a path, or a name to look up in PATH")
	c.Flags().StringVar(&o.server, "server", "", "With --program: the server in the requests")
	c.Flags().StringVar(&o.config, "config", "", "With --program: the config in the requests, as JSON")
	c.Flags().DurationVar(&o.timeout, "timeout", 30*time.Second, "How long one run of the plugin may take")
	return c
}

// checked is the result of one check as it is printed.
type checked struct {
	Check  string `json:"check"`
	Passed bool   `json:"passed"`
	Error  string `json:"error,omitempty"`
}

func (o *verify) run(ctx context.Context, args []string) error {
	format, err := o.output.Format()
	if err != nil {
		return err
	}
	suite, err := o.command(ctx, args)
	if err != nil {
		return err
	}
	suite.Timeout = o.timeout
	var results []checked
	failed := 0
	err = plugintest.Verify(ctx, *suite, func(r plugintest.Result) {
		result := checked{Check: r.Check, Passed: r.Err == nil}
		if r.Err != nil {
			failed++
			result.Error = r.Err.Error()
		}
		results = append(results, result)
		if format == output.Table {
			o.print(result)
		}
	})
	if err != nil {
		return err
	}
	if format != output.Table {
		if err := o.output.PrintValue(o.env.Out, results); err != nil {
			return err
		}
	}
	if failed > 0 {
		return command.Exit(command.ExitFailed, fmt.Errorf("%d of %d checks failed", failed, len(results)))
	}
	return nil
}

func (o *verify) print(result checked) {
	_, _ = fmt.Fprintf(o.env.Out, "%s %s\n", o.env.Mark(result.Passed), result.Check)
	if result.Error != "" {
		_, _ = fmt.Fprintf(o.env.Out, "  %s\n", o.env.Paint(command.Red, command.OneLine(result.Error)))
	}
}

func (o *verify) command(ctx context.Context, args []string) (*plugintest.Command, error) {
	if o.program == "" {
		if len(args) != 1 {
			return nil, command.Usagef("name one profile, or a plugin with --program")
		}
		if o.server != "" || o.config != "" {
			return nil, command.Usagef("--server and --config need --program: those of a profile are in the profile")
		}
		return o.commandOf(ctx, args[0])
	}
	cluster := &plugin.Cluster{Server: o.server}
	if o.config != "" {
		if !json.Valid([]byte(o.config)) {
			return nil, command.Usagef("--config is not JSON")
		}
		cluster.Config = json.RawMessage(o.config)
	}
	if o.server == "" && o.config == "" {
		cluster = nil
	}
	return &plugintest.Command{Path: o.program, Args: args, Cluster: cluster}, nil
}

// commandOf returns what a controller runs for a profile.
func (o *verify) commandOf(ctx context.Context, name string) (*plugintest.Command, error) {
	opened, err := o.sources.Open(ctx, o.env)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	profiles, err := opened.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	method, err := opened.Credentials()
	if err != nil {
		return nil, err
	}
	access, err := method.Resolve(ctx, profiles[0])
	if err != nil {
		return nil, err
	}
	defer access.Release()
	return commandFor(profiles[0], access)
}

func commandFor(profile *inventory.Profile, access *credentials.Access) (*plugintest.Command, error) {
	exec := access.PortableRESTConfig().ExecProvider
	if exec == nil {
		return nil, fmt.Errorf("profile %s has no plugin to verify: its credential is in its kubeconfig, or its plugin runs in the process of the controller", inventory.KeyOf(profile))
	}
	c := &plugintest.Command{Path: exec.Command, Args: exec.Args, Env: variables(exec.Env)}
	for _, provider := range inventory.AccessProviders(profile) {
		if provider.Name != access.Provider() {
			continue
		}
		cluster, err := requestCluster(&provider.Cluster)
		if err != nil {
			return nil, err
		}
		c.Cluster = cluster
		return c, nil
	}
	return nil, errors.New("the profile was changed") // it is the one that was resolved
}

func variables(env []clientcmdapi.ExecEnvVar) []string {
	var variables []string
	for _, e := range env {
		variables = append(variables, e.Name+"="+e.Value)
	}
	return variables
}

// requestCluster returns what the plugin gets of the cluster.
func requestCluster(cluster *clientcmdv1.Cluster) (*plugin.Cluster, error) {
	data, err := json.Marshal(cluster)
	if err != nil {
		return nil, err
	}
	request := &plugin.Cluster{}
	if err := json.Unmarshal(data, request); err != nil {
		return nil, err
	}
	for _, extension := range cluster.Extensions {
		if extension.Name == "client.authentication.k8s.io/exec" {
			request.Config = extension.Extension.Raw
		}
	}
	return request, nil
}
