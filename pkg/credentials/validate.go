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

// validateProviders returns an error that names the place, the entry and the
// field of each fault.
func validateProviders(place string, providers []Provider) error {
	var faults []error
	seen := map[string]bool{}
	for i := range providers {
		provider := &providers[i]
		if seen[provider.Name] {
			faults = append(faults, entryError(place, providers, i, errors.New("name: already taken by an earlier entry")))
		}
		seen[provider.Name] = true
		for _, fault := range provider.faults() {
			faults = append(faults, entryError(place, providers, i, fault))
		}
	}
	return errors.Join(faults...)
}

// entryError says in which entry the fault is.
func entryError(place string, providers []Provider, i int, fault error) error {
	return fmt.Errorf("%s: providers[%d] (%q): %w", place, i, providers[i].Name, fault)
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
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"allowedServers", p.AllowedServers}, {"allowedProxies", p.AllowedProxies}} {
		for i, pattern := range list.patterns {
			if pattern == "" || strings.ContainsAny(pattern, "/ ") {
				fault("%s[%d]: %q is not a host with an optional port", list.field, i, pattern)
			}
		}
	}
	for i, pattern := range p.AllowedProfileEnvVars {
		if !isVariableName(strings.ReplaceAll(pattern, "*", "_")) {
			fault("allowedProfileEnvVars[%d]: %q is not the name of a variable", i, pattern)
		}
	}
	for i, pattern := range p.InheritedEnvVars {
		if pattern == "" || strings.ContainsAny(pattern, "=\x00") {
			fault("inheritedEnvVars[%d]: %q is not the name of a variable", i, pattern)
		}
	}
	if p.InProcess != "" {
		return append(faults, p.inProcessFaults()...)
	}
	if p.ExecConfig == nil {
		fault("execConfig: must be given")
		return faults
	}
	if p.ExecConfig.Command == "" {
		fault("execConfig.command: must not be empty")
	}
	return append(faults, execFaults(p.ExecConfig)...)
}

// inProcessFaults are those of an entry with InProcess: a plugin that is not a
// process of its own has no environment of its own.
func (p *Provider) inProcessFaults() []error {
	var faults []error
	none := "%s: a plugin in this process has no environment of its own"
	switch p.ProfileSourcedEnvVarsPolicy {
	case "", ProfileSourcedEnvVarsIgnore:
	default:
		faults = append(faults, fmt.Errorf(none, "profileSourcedEnvVarsPolicy"))
	}
	if p.InheritedEnvVars != nil {
		faults = append(faults, fmt.Errorf(none, "inheritedEnvVars"))
	}
	if p.ExecConfig == nil {
		return faults
	}
	if len(p.ExecConfig.Env) > 0 {
		faults = append(faults, fmt.Errorf(none, "execConfig.env"))
	}
	return append(faults, execFaults(p.ExecConfig)...)
}

// execFaults lets an empty command pass.
func execFaults(exec *clientcmdapi.ExecConfig) []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("execConfig."+format, args...)) }

	switch exec.APIVersion {
	case apiVersionV1, apiVersionV1beta1:
	default:
		fault("apiVersion: %q is neither %s nor %s", exec.APIVersion, apiVersionV1, apiVersionV1beta1)
	}
	if exec.Command != "" {
		if err := commandFault(exec.Command); err != nil {
			fault("command: %w", err)
		}
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

// commandFault returns what is wrong with a command that is not empty, or nil.
func commandFault(command string) error {
	switch {
	case command == "." || command == ".." || strings.ContainsRune(command, 0):
		return fmt.Errorf("%q is not the name of a program", command)
	case strings.ContainsAny(command, `/\`) && !filepath.IsAbs(command):
		return fmt.Errorf("%q is neither an absolute path nor a name without a slash", command)
	}
	return nil
}
