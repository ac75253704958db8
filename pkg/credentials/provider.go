// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Provider says how to obtain credentials for the access provider of the same
// name in a profile, and what the profile may choose. The first group of fields
// is KEP-5339's; the second is ours, and other readers of the file may not know
// it.
type Provider struct {
	// Name is the access provider's name. Required.
	Name string `json:"name"`

	// ExecConfig is the plugin and its arguments and environment. Required.
	// The command is an absolute path, or a name in one of the resolver's
	// plugin folders. The environment is added to the process's own.
	// InteractiveMode may be left out; plugins never are interactive here.
	// Config is ignored: that comes from the profile.
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
	// dots included: "*.example.com", "10.0.*:6443". Default: any host.
	AllowedServers []string `json:"allowedServers,omitempty"`

	// AllowInsecureSkipTLSVerify says whether the profile may turn off the
	// verification of the server's certificate. Whoever is between then gets
	// to see the token. Default: no.
	AllowInsecureSkipTLSVerify bool `json:"allowInsecureSkipTLSVerify,omitempty"`
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

// validateProviders returns an error that names the place, the entry and the
// field of each fault.
func validateProviders(place string, providers []Provider) error {
	var faults []error
	seen := map[string]bool{}
	for i := range providers {
		provider := &providers[i]
		entry := fmt.Sprintf("%s: providers[%d] (%q)", place, i, provider.Name)
		if seen[provider.Name] {
			faults = append(faults, fmt.Errorf("%s: name: already taken by an earlier entry", entry))
		}
		seen[provider.Name] = true
		for _, fault := range provider.faults() {
			faults = append(faults, fmt.Errorf("%s: %w", entry, fault))
		}
	}
	return errors.Join(faults...)
}

func (p *Provider) faults() []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if p.Name == "" {
		fault("name: must not be empty")
	}
	switch p.ProfileSourcedCLIArgsPolicy {
	case "", ProfileSourcedCLIArgsAppend, ProfileSourcedCLIArgsIgnore:
	default:
		fault("profileSourcedCLIArgsPolicy: %q is neither Append nor Ignore", p.ProfileSourcedCLIArgsPolicy)
	}
	switch p.ProfileSourcedEnvVarsPolicy {
	case "", ProfileSourcedEnvVarsAppendIfNotExists, ProfileSourcedEnvVarsReplace, ProfileSourcedEnvVarsIgnore:
	default:
		fault("profileSourcedEnvVarsPolicy: %q is none of AppendIfNotExists, Replace, Ignore", p.ProfileSourcedEnvVarsPolicy)
	}
	for i, pattern := range p.AllowedServers {
		if pattern == "" || strings.ContainsAny(pattern, "/ ") {
			fault("allowedServers[%d]: %q is not a host with an optional port", i, pattern)
		}
	}

	if p.ExecConfig == nil {
		fault("execConfig: must be given")
		return faults
	}
	return append(faults, execFaults(p.ExecConfig)...)
}

func execFaults(exec *clientcmdapi.ExecConfig) []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("execConfig."+format, args...)) }

	switch exec.APIVersion {
	case apiVersionV1, apiVersionV1beta1:
	default:
		fault("apiVersion: %q is neither %s nor %s", exec.APIVersion, apiVersionV1, apiVersionV1beta1)
	}
	switch command := exec.Command; {
	case command == "":
		fault("command: must not be empty")
	case command == "." || command == ".." || strings.ContainsRune(command, 0):
		fault("command: %q is not the name of a program", command)
	case strings.ContainsAny(command, `/\`) && !filepath.IsAbs(command):
		fault("command: %q is neither an absolute path nor a name without a slash", command)
	}
	for i, arg := range exec.Args {
		if strings.ContainsRune(arg, 0) {
			fault("args[%d]: has a NUL character", i)
		}
	}
	for i, env := range exec.Env {
		switch {
		case env.Name == "" || strings.ContainsAny(env.Name, "=\x00"):
			fault("env[%d].name: %q is not the name of a variable", i, env.Name)
		case env.Name == execInfoVariable:
			fault("env[%d].name: %s is set by the caller of the plugin", i, env.Name)
		case slices.ContainsFunc(exec.Env[:i], func(e clientcmdapi.ExecEnvVar) bool { return e.Name == env.Name }):
			fault("env[%d].name: %q is there twice", i, env.Name)
		case strings.ContainsRune(env.Value, 0):
			fault("env[%d].value: has a NUL character", i)
		}
	}
	switch exec.InteractiveMode {
	case "", clientcmdapi.NeverExecInteractiveMode, clientcmdapi.IfAvailableExecInteractiveMode:
	default:
		fault("interactiveMode: %q is not possible, plugins are run without a terminal", exec.InteractiveMode)
	}
	return faults
}

// needsPluginDir tells whether the command is a name to be looked for.
func (p *Provider) needsPluginDir() bool { return !filepath.IsAbs(p.ExecConfig.Command) }

func copyProviders(providers []Provider) []Provider {
	copied := slices.Clone(providers)
	for i := range copied {
		copied[i].ExecConfig = copied[i].ExecConfig.DeepCopy()
		copied[i].AllowedServers = slices.Clone(copied[i].AllowedServers)
	}
	return copied
}
