// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providerfile

import (
	"slices"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Provider defines how to obtain credentials for the access provider of the same
// name in a ClusterProfile, and what the profile may choose. All but Rollcall is
// defined by KEP-5339.
type Provider struct {
	// Name is the access provider's name. Required.
	Name string `json:"name"`

	// ExecConfig is the plugin and its arguments and environment. Required
	// without Rollcall.InProcess. The command is a path or, without a slash, the
	// name of a file in a plugin folder. The environment is added to that of the
	// process, see Extensions.InheritedEnvVars. InteractiveMode may be omitted;
	// plugins are never interactive. Config is ignored: the profile has it.
	ExecConfig *clientcmdapi.ExecConfig `json:"execConfig,omitempty"`

	// ProfileSourcedCLIArgsPolicy defines whether the profile may add arguments.
	// They can override those of ExecConfig if the plugin lets a later flag win.
	// Default: Ignore.
	ProfileSourcedCLIArgsPolicy ProfileSourcedCLIArgsPolicy `json:"profileSourcedCLIArgsPolicy,omitempty"`

	// ProfileSourcedEnvVarsPolicy defines whether the profile may add environment
	// variables. It may never add some, such as PATH, HTTPS_PROXY or
	// GOOGLE_APPLICATION_CREDENTIALS. Default: Ignore.
	ProfileSourcedEnvVarsPolicy ProfileSourcedEnvVarsPolicy `json:"profileSourcedEnvVarsPolicy,omitempty"`

	// Rollcall has what KEP-5339 does not define. Other programs that read the
	// file ignore it. Optional.
	Rollcall Extensions `json:"rollcall,omitzero"`
}

// Extensions are the fields of a Provider under its key "rollcall".
type Extensions struct {
	// AllowedServers are the hosts that the provider's credentials may be sent
	// to. Set it for credentials that more than one server accepts: the author of
	// a profile could otherwise have them sent to a server of their own. Each is
	// a host with an optional port, in which "*" stands for any characters,
	// including dots: "*.example.com", "10.0.*:6443". One whose host consists of
	// digits, dots and stars matches IP addresses only, and no name such as
	// 10.0.example.com. Default: any host.
	AllowedServers []string `json:"allowedServers,omitempty"`

	// AllowedProxies are the proxies, in the same form, that the profile may set.
	// With a proxy and a certificate authority of their own, the author of a
	// profile could otherwise impersonate any of AllowedServers. Default: any
	// proxy if AllowedServers is empty, else none.
	AllowedProxies []string `json:"allowedProxies,omitempty"`

	// AllowedProfileNamespaces are the namespaces of the profiles that may use the
	// provider. In each, "*" stands for any characters. A profile in another one
	// is refused, and does not get the next provider of the file that it lists. Default: any.
	AllowedProfileNamespaces []string `json:"allowedProfileNamespaces,omitempty"`

	// AllowedClusterManagers are the same for spec.clusterManager.name of the
	// profile. Its author chooses that name, unless an admission policy of the
	// hub binds it to the author. Default: any.
	AllowedClusterManagers []string `json:"allowedClusterManagers,omitempty"`

	// AllowInsecureSkipTLSVerify lets the profile turn off the verification of
	// the server's certificate. An attacker in the network can then read the
	// token. Default: false.
	AllowInsecureSkipTLSVerify bool `json:"allowInsecureSkipTLSVerify,omitempty"`

	// AllowPlainHTTP lets the profile's server be an http URL. An attacker in the
	// network can then read the token. Default: false.
	AllowPlainHTTP bool `json:"allowPlainHTTP,omitempty"`

	// AllowedProfileEnvVars are the environment variables that the profile may
	// set if ProfileSourcedEnvVarsPolicy lets it set any. In each name, "*"
	// stands for any characters. Names that are never accepted from a profile
	// are not accepted if they are listed, either. Default: all others.
	AllowedProfileEnvVars []string `json:"allowedProfileEnvVars,omitempty"`

	// InheritedEnvVars are the environment variables of this process which the
	// plugin gets, besides those that ExecConfig and the profile set. In each
	// name, "*" stands for any characters. An empty list, unlike an omitted one,
	// means none. A portable configuration cannot honour it. Default: all.
	InheritedEnvVars []string `json:"inheritedEnvVars,omitempty"`

	// InProcess is the name of a plugin in this process, which then obtains the
	// credential from the same arguments and the same profile as the executable
	// would. The command of ExecConfig is then used by portable configurations
	// only, and may be omitted. Without an ExecConfig, the plugin has no
	// arguments and gets the cluster's information. Default: the command is run.
	InProcess string `json:"inProcess,omitempty"`
}

// ProfileSourcedCLIArgsPolicy defines whether a plugin gets a profile's arguments
// (KEP-5339). The empty policy is ProfileSourcedCLIArgsIgnore.
type ProfileSourcedCLIArgsPolicy string

const (
	// ProfileSourcedCLIArgsAppend appends the profile's to the provider's.
	ProfileSourcedCLIArgsAppend ProfileSourcedCLIArgsPolicy = "Append"

	// ProfileSourcedCLIArgsIgnore omits the profile's.
	ProfileSourcedCLIArgsIgnore ProfileSourcedCLIArgsPolicy = "Ignore"
)

// ProfileSourcedEnvVarsPolicy defines whether a plugin gets a profile's
// environment variables (KEP-5339). The empty policy is
// ProfileSourcedEnvVarsIgnore.
type ProfileSourcedEnvVarsPolicy string

const (
	// ProfileSourcedEnvVarsAppendIfNotExists adds the profile's. The provider's
	// value of a variable has precedence.
	ProfileSourcedEnvVarsAppendIfNotExists ProfileSourcedEnvVarsPolicy = "AppendIfNotExists"

	// ProfileSourcedEnvVarsReplace adds the profile's. The profile's value of a
	// variable has precedence.
	ProfileSourcedEnvVarsReplace ProfileSourcedEnvVarsPolicy = "Replace"

	// ProfileSourcedEnvVarsIgnore omits the profile's.
	ProfileSourcedEnvVarsIgnore ProfileSourcedEnvVarsPolicy = "Ignore"
)

func (p *Provider) deepCopy() Provider {
	copied := *p
	copied.ExecConfig = p.ExecConfig.DeepCopy()
	copied.Rollcall.AllowedServers = slices.Clone(p.Rollcall.AllowedServers)
	copied.Rollcall.AllowedProxies = slices.Clone(p.Rollcall.AllowedProxies)
	copied.Rollcall.AllowedProfileNamespaces = slices.Clone(p.Rollcall.AllowedProfileNamespaces)
	copied.Rollcall.AllowedClusterManagers = slices.Clone(p.Rollcall.AllowedClusterManagers)
	copied.Rollcall.AllowedProfileEnvVars = slices.Clone(p.Rollcall.AllowedProfileEnvVars)
	copied.Rollcall.InheritedEnvVars = slices.Clone(p.Rollcall.InheritedEnvVars)
	return copied
}
