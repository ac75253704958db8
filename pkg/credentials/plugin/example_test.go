// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// exchanger is a plugin with a flag and a config.
type exchanger struct {
	issuer string
}

func (e *exchanger) Name() string    { return "mc-credential-example" }
func (e *exchanger) Version() string { return plugin.BuildVersion() }

// AddFlags makes the plugin a plugin.Flagger.
func (e *exchanger) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&e.issuer, "issuer", "https://tokens.example.com", "`URL` of the token issuer")
}

func (e *exchanger) Credential(_ context.Context, request plugin.Request) (*plugin.Credential, error) {
	config, err := plugin.DecodeConfig[struct {
		Audience string `json:"audience"`
	}](request)
	if err != nil {
		return nil, err
	}
	if config.Audience == "" {
		return nil, fmt.Errorf("%w: config of the cluster: audience must be given", plugin.ErrBadRequest)
	}
	// A real plugin would request a token from the issuer here.
	return &plugin.Credential{Token: "token-for-" + config.Audience}, nil
}

// The main function of a plugin has one line: plugin.Main(&exchanger{}). Run does
// the same within a process, for example in a test.
func ExampleRun() {
	env := []string{`KUBERNETES_EXEC_INFO={"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",
		"spec":{"cluster":{"server":"https://c1:6443","config":{"audience":"c1"}}}}`}
	code := plugin.Run(context.Background(), &exchanger{}, []string{"--timeout=5s"}, env, os.Stdout, os.Stderr)
	fmt.Println("exit code", code)
	// Output:
	// {"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{},"status":{"token":"token-for-c1"}}
	// exit code 0
}

func ExampleDecodeConfig() {
	type config struct {
		Audience string `json:"audience"`
	}
	request := plugin.Request{Cluster: &plugin.Cluster{Config: []byte(`{"audience":"c1"}`)}}
	fmt.Println(plugin.DecodeConfig[config](request))

	request.Cluster.Config = []byte(`{"Audience":"c1"}`)
	_, err := plugin.DecodeConfig[config](request)
	fmt.Println(err)
	// Output:
	// {c1} <nil>
	// bad request: config of the cluster: unknown field "Audience"
}
