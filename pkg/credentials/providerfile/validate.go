// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providerfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
)

// Complete returns a deep copy of the providers with their defaults, or an error
// that starts with the source and names the entry and the field of each fault.
// The function, if it is not nil, may change the copies and add faults.
func Complete(source string, providers []Provider, check func(*Provider) error) ([]Provider, error) {
	var faults []error
	completed := make([]Provider, len(providers))
	seen := map[string]bool{}
	for i := range providers {
		completed[i] = providers[i].deepCopy()
		provider := &completed[i]
		fault := func(err error) { faults = append(faults, entryError(source, i, provider, err)) }
		if seen[provider.Name] {
			fault(errors.New("name: already used by an earlier entry"))
		}
		seen[provider.Name] = true
		own := provider.faults()
		for _, err := range own {
			fault(err)
		}
		if provider.ExecConfig == nil {
			provider.ExecConfig = &clientcmdapi.ExecConfig{APIVersion: rules.APIVersionV1, ProvideClusterInfo: true}
		}
		if check != nil && len(own) == 0 {
			if err := check(provider); err != nil {
				fault(err)
			}
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return completed, nil
}

func entryError(source string, i int, provider *Provider, err error) error {
	return fmt.Errorf("%s: providers[%d] (%q): %w", source, i, provider.Name, err)
}

// faults returns what is wrong with the entry.
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
	faults = append(faults, p.Rollcall.faults()...)
	switch {
	case p.Rollcall.InProcess != "":
		faults = append(faults, p.inProcessFaults()...)
	case p.ExecConfig == nil:
		fault("execConfig: is required")
	case p.ExecConfig.Command == "":
		fault("execConfig.command: must not be empty")
	}
	if p.ExecConfig != nil {
		faults = append(faults, execFaults(p.ExecConfig)...)
	}
	return faults
}

func (e *Extensions) faults() []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("rollcall."+format, args...)) }

	for _, list := range []struct {
		field    string
		patterns []string
	}{{"allowedServers", e.AllowedServers}, {"allowedProxies", e.AllowedProxies}} {
		for i, pattern := range list.patterns {
			if pattern == "" || strings.ContainsAny(pattern, "/ ") {
				fault("%s[%d]: %q is not a host with an optional port", list.field, i, pattern)
			}
		}
	}
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"allowedProfileNamespaces", e.AllowedProfileNamespaces}, {"allowedClusterManagers", e.AllowedClusterManagers}} {
		for i, pattern := range list.patterns {
			if pattern == "" || strings.ContainsAny(pattern, "/ ") {
				fault("%s[%d]: %q is not a name", list.field, i, pattern)
			}
		}
	}
	for _, list := range e.allowlists() {
		if list.entries != nil && len(list.entries) == 0 {
			// It could mean all or none.
			fault("%s: must not be empty, omit it for the default", list.field)
		}
	}
	for i, pattern := range e.AllowedProfileEnvVars {
		if !rules.IsVariableName(strings.ReplaceAll(pattern, "*", "_")) {
			fault("allowedProfileEnvVars[%d]: %q is not the name of a variable", i, pattern)
		}
	}
	for i, pattern := range e.InheritedEnvVars {
		if pattern == "" || strings.ContainsAny(pattern, "=\x00") {
			fault("inheritedEnvVars[%d]: %q is not the name of a variable", i, pattern)
		}
	}
	return faults
}

// allowlist is a list that allows more than it names if it is empty.
type allowlist struct {
	field   string
	entries []string
}

func (e *Extensions) allowlists() []allowlist {
	return []allowlist{
		{"allowedServers", e.AllowedServers},
		{"allowedProxies", e.AllowedProxies},
		{"allowedProfileNamespaces", e.AllowedProfileNamespaces},
		{"allowedClusterManagers", e.AllowedClusterManagers},
		{"allowedProfileEnvVars", e.AllowedProfileEnvVars},
	}
}

// inProcessFaults are those of an entry with InProcess: a plugin in this process
// has no environment of its own.
func (p *Provider) inProcessFaults() []error {
	var fields []string
	if p.ProfileSourcedEnvVarsPolicy != "" && p.ProfileSourcedEnvVarsPolicy != ProfileSourcedEnvVarsIgnore {
		fields = append(fields, "profileSourcedEnvVarsPolicy")
	}
	if p.Rollcall.InheritedEnvVars != nil {
		fields = append(fields, "rollcall.inheritedEnvVars")
	}
	if p.ExecConfig != nil && len(p.ExecConfig.Env) > 0 {
		fields = append(fields, "execConfig.env")
	}
	var faults []error
	for _, field := range fields {
		faults = append(faults, fmt.Errorf("%s: a plugin in this process has no environment of its own", field))
	}
	return faults
}

// execFaults accepts an empty command.
func execFaults(exec *clientcmdapi.ExecConfig) []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("execConfig."+format, args...)) }

	switch exec.APIVersion {
	case rules.APIVersionV1, rules.APIVersionV1beta1:
	default:
		fault("apiVersion: %q is neither %s nor %s", exec.APIVersion, rules.APIVersionV1, rules.APIVersionV1beta1)
	}
	if err := rules.CheckCommand(exec.Command); err != nil {
		fault("command: %w", err)
	}
	for i, arg := range exec.Args {
		if strings.ContainsRune(arg, 0) {
			fault("args[%d]: contains a NUL character", i)
		}
	}
	for i, env := range exec.Env {
		switch {
		case env.Name == "" || strings.ContainsAny(env.Name, "=\x00"):
			fault("env[%d].name: %q is not the name of a variable", i, env.Name)
		case env.Name == rules.ExecInfoVariable:
			fault("env[%d].name: %s is set by the caller of the plugin", i, env.Name)
		case slices.ContainsFunc(exec.Env[:i], func(e clientcmdapi.ExecEnvVar) bool { return e.Name == env.Name }):
			fault("env[%d].name: %q is a duplicate", i, env.Name)
		case strings.ContainsRune(env.Value, 0):
			fault("env[%d].value: contains a NUL character", i)
		}
	}
	switch exec.InteractiveMode {
	case "", clientcmdapi.NeverExecInteractiveMode, clientcmdapi.IfAvailableExecInteractiveMode:
	default:
		fault("interactiveMode: %q is not possible, plugins are run without a terminal", exec.InteractiveMode)
	}
	return faults
}
