// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"cmp"
	"fmt"
	"net"
	"net/url"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
)

// member are the flags of the member. --context is that of the hub, as everywhere.
type member struct {
	kubeconfig, context string
}

func (m *member) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&m.context, "member-context", "", "The `name` of the kubeconfig context for the member (default the current one of --member-kubeconfig)")
	flags.StringVar(&m.kubeconfig, "member-kubeconfig", "", "Path of the kubeconfig `file` for the member (default that for the hub)")
}

func (m *member) given() bool { return m.kubeconfig != "" || m.context != "" }

// config returns the configuration for the member.
func (m *member) config(env *command.Env) (*rest.Config, error) {
	if !m.given() {
		return nil, command.Usagef("the member is required: set --member-context or --member-kubeconfig (--context is that of the hub)")
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cmp.Or(m.kubeconfig, env.Kube.ConfigAccess().GetExplicitFile())
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: m.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("configuration for the member: %w", err)
	}
	config.QPS = -1
	config.UserAgent = command.UserAgent
	return config, nil
}

// local reports whether the server is at an address of this machine only.
func local(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	address := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || address.IsLoopback() || address.IsUnspecified()
}
