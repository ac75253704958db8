// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// UserAgent is that of all requests of the program.
const UserAgent = "mc-credential"

// Env is what each command gets from the program.
type Env struct {
	*Terminal

	// Kube is the configuration of the hub, from the flags --kubeconfig, --context and
	// --namespace.
	Kube clientcmd.ClientConfig

	rules     *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
}

// NewEnv returns the Env for the terminal.
func NewEnv(terminal *Terminal) *Env {
	e := &Env{Terminal: terminal, rules: clientcmd.NewDefaultClientConfigLoadingRules(), overrides: &clientcmd.ConfigOverrides{}}
	e.Kube = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(e.rules, e.overrides)
	return e
}

// AddFlags adds the flags of the hub.
func (e *Env) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&e.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "Path of the kubeconfig `file` for the hub (default $KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&e.overrides.CurrentContext, clientcmd.FlagContext, "", "The `name` of the kubeconfig context for the hub")
	flags.StringVarP(&e.overrides.Context.Namespace, clientcmd.FlagNamespace, "n", "", "The `namespace` of the hub (default that of the context)")
	flags.StringVar(&e.overrides.AuthInfo.Impersonate, clientcmd.FlagImpersonate, "", "The `user` to act as in the hub")
	flags.StringArrayVar(&e.overrides.AuthInfo.ImpersonateGroups, clientcmd.FlagImpersonateGroup, nil, "A `group` to act as in the hub, may be repeated")
}

// HubConfig returns the configuration for the hub, without a limit of requests: the API
// server limits them.
func (e *Env) HubConfig() (*rest.Config, error) {
	config, err := e.Kube.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.New("no configuration for the hub: set --kubeconfig or KUBECONFIG")
	case err != nil:
		return nil, fmt.Errorf("configuration for the hub: %w", err)
	}
	config.QPS = -1
	config.UserAgent = UserAgent
	return config, nil
}

// Namespace returns the namespace of the hub, from the flag, the context, or "default".
func (e *Env) Namespace() (string, error) {
	namespace, _, err := e.Kube.Namespace()
	if err != nil {
		return "", fmt.Errorf("namespace of the hub: %w", err)
	}
	return namespace, nil
}
