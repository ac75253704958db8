// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"path/filepath"
	"slices"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Provider says how to obtain credentials for the access provider of the same
// name in a profile, and what the profile may choose. The first group of fields
// is KEP-5339's; the second is ours, and other readers of the file may not know
// it.
type Provider struct {
	// Name is the access provider's name. Required.
	Name string `json:"name"`

	// ExecConfig is the plugin and its arguments and environment. Required,
	// unless there is InProcess. The command is an absolute path, or a name in
	// one of the resolver's plugin folders. The environment is added to the
	// process's own, see InheritedEnvVars. InteractiveMode may be left out;
	// plugins never are interactive here. Config is ignored: that comes from
	// the profile.
	ExecConfig *clientcmdapi.ExecConfig `json:"execConfig"`

	// ProfileSourcedCLIArgsPolicy says whether the profile may add arguments.
	// They can override those of ExecConfig, as far as the plugin lets a later
	// flag win. Default: Ignore.
	ProfileSourcedCLIArgsPolicy ProfileSourcedCLIArgsPolicy `json:"profileSourcedCLIArgsPolicy,omitempty"`

	// ProfileSourcedEnvVarsPolicy says whether the profile may add environment
	// variables. Some names are never accepted from a profile, such as PATH,
	// HTTPS_PROXY or GOOGLE_APPLICATION_CREDENTIALS. Default: Ignore.
	ProfileSourcedEnvVarsPolicy ProfileSourcedEnvVarsPolicy `json:"profileSourcedEnvVarsPolicy,omitempty"`

	// AllowedServers are the hosts to which the provider's credentials may go,
	// for credentials that more than one server accepts: whoever writes a
	// profile could otherwise have them sent to a server of their own. Each is a
	// host with an optional port, in which "*" stands for any characters,
	// dots included: "*.example.com", "10.0.*:6443". One whose host is of digits,
	// dots and stars matches IP addresses only, and no name such as
	// 10.0.example.com. Default: any host.
	AllowedServers []string `json:"allowedServers,omitempty"`

	// AllowedProxies are the proxies, in the same form, that the profile may put
	// in front of the server. By a proxy and a certificate authority of their
	// own, whoever writes a profile could otherwise be any of AllowedServers.
	// Default: any proxy where AllowedServers is empty, else none.
	AllowedProxies []string `json:"allowedProxies,omitempty"`

	// AllowInsecureSkipTLSVerify says whether the profile may turn off the
	// verification of the server's certificate. Whoever is between then gets
	// to see the token. Default: no.
	AllowInsecureSkipTLSVerify bool `json:"allowInsecureSkipTLSVerify,omitempty"`

	// AllowPlainHTTP says whether the profile's server may be an http URL.
	// Whoever is between then gets to see the token. Default: no.
	AllowPlainHTTP bool `json:"allowPlainHTTP,omitempty"`

	// AllowedProfileEnvVars are the environment variables which the profile may
	// set, as far as ProfileSourcedEnvVarsPolicy lets it set any. In each name,
	// "*" stands for any characters. Names that are never accepted are not
	// accepted by being listed. Default: all others.
	AllowedProfileEnvVars []string `json:"allowedProfileEnvVars,omitempty"`

	// InheritedEnvVars are the environment variables of this process which the
	// plugin gets, besides those that ExecConfig and the profile set. In each
	// name, "*" stands for any characters; an empty list, unlike one that is
	// left out, hands on none. PortableRESTConfig cannot keep to it. Default:
	// all.
	InheritedEnvVars []string `json:"inheritedEnvVars,omitempty"`

	// InProcess is the name of one of the resolver's Plugins. It obtains the
	// credential in this process, from the same arguments and the same profile
	// as the binary would. ExecConfig's command is then used by
	// PortableRESTConfig alone, and may be left out; where all of ExecConfig is,
	// the plugin has no arguments and is told of the cluster. Default: the
	// command is run.
	InProcess string `json:"inProcess,omitempty"`
}

// exec returns ExecConfig, or what stands for it.
func (p *Provider) exec() *clientcmdapi.ExecConfig {
	if p.ExecConfig != nil {
		return p.ExecConfig
	}
	return &clientcmdapi.ExecConfig{APIVersion: apiVersionV1, ProvideClusterInfo: true}
}

// ProfileSourcedCLIArgsPolicy says what becomes of a profile's arguments for a
// plugin (KEP-5339). The empty policy is ProfileSourcedCLIArgsIgnore.
type ProfileSourcedCLIArgsPolicy string

const (
	// ProfileSourcedCLIArgsAppend appends the profile's to the provider's.
	ProfileSourcedCLIArgsAppend ProfileSourcedCLIArgsPolicy = "Append"

	// ProfileSourcedCLIArgsIgnore leaves out the profile's.
	ProfileSourcedCLIArgsIgnore ProfileSourcedCLIArgsPolicy = "Ignore"
)

// ProfileSourcedEnvVarsPolicy says what becomes of a profile's environment
// variables for a plugin (KEP-5339). The empty policy is
// ProfileSourcedEnvVarsIgnore.
type ProfileSourcedEnvVarsPolicy string

const (
	// ProfileSourcedEnvVarsAppendIfNotExists adds the profile's; of one that
	// the provider sets too, the provider's value holds.
	ProfileSourcedEnvVarsAppendIfNotExists ProfileSourcedEnvVarsPolicy = "AppendIfNotExists"

	// ProfileSourcedEnvVarsReplace adds the profile's; of one that the
	// provider sets too, the profile's value holds.
	ProfileSourcedEnvVarsReplace ProfileSourcedEnvVarsPolicy = "Replace"

	// ProfileSourcedEnvVarsIgnore leaves out the profile's.
	ProfileSourcedEnvVarsIgnore ProfileSourcedEnvVarsPolicy = "Ignore"
)

const (
	apiVersionV1      = "client.authentication.k8s.io/v1"
	apiVersionV1beta1 = "client.authentication.k8s.io/v1beta1"
)

// needsPluginDir tells whether the command is a name to be looked for.
func (p *Provider) needsPluginDir() bool {
	command := p.exec().Command
	return command != "" && !filepath.IsAbs(command)
}

func copyProviders(providers []Provider) []Provider {
	copied := slices.Clone(providers)
	for i := range copied {
		copied[i].ExecConfig = copied[i].ExecConfig.DeepCopy()
		copied[i].AllowedServers = slices.Clone(copied[i].AllowedServers)
		copied[i].AllowedProxies = slices.Clone(copied[i].AllowedProxies)
		copied[i].AllowedProfileEnvVars = slices.Clone(copied[i].AllowedProfileEnvVars)
		copied[i].InheritedEnvVars = slices.Clone(copied[i].InheritedEnvVars)
	}
	return copied
}
