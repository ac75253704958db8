// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// Origins of arguments and variables.
const (
	FromProvider = "provider"
	FromProfile  = "profile"
	FromProcess  = "process" // inherited of our own
	FromRequest  = "request"
)

// Variable is an environment variable of a run.
type Variable struct {
	Name, Value string
	From        string
}

// variables returns those of a run in order.
func (i *Invocation) variables(own []string) []Variable {
	request := Variable{Name: rules.ExecInfoVariable, Value: i.ExecInfo, From: FromRequest}
	if i.InProcess != "" {
		return []Variable{request}
	}
	variables := make([]Variable, 0, len(own)+len(i.Env)+1)
	for _, variable := range own {
		name, value, _ := strings.Cut(variable, "=")
		if i.Inherited == nil || rules.MatchesAny(i.Inherited, name) {
			variables = append(variables, Variable{Name: name, Value: value, From: FromProcess})
		}
	}
	for _, variable := range i.Env {
		from := FromProvider
		if i.fromProfile[variable.Name] {
			from = FromProfile
		}
		variables = append(variables, Variable{Name: variable.Name, Value: variable.Value, From: from})
	}
	return append(variables, request)
}

// Environment returns the variables that the plugin gets from an environment of
// our own: of those of the same name the last one, as in package os/exec.
func (i *Invocation) Environment(own []string) []Variable {
	all := i.variables(own)
	last := make(map[string]int, len(all))
	for n, variable := range all {
		last[variable.Name] = n
	}
	var effective []Variable
	for n, variable := range all {
		if last[variable.Name] == n {
			effective = append(effective, variable)
		}
	}
	return effective
}

// ProviderArgs returns how many of Args are the provider's. The profile's follow.
func (i *Invocation) ProviderArgs() int { return len(i.exec.Args) }

// Dropped is what a profile asks for and the plugin does not get.
type Dropped struct {
	Extension string   // of the profile
	Args      []string // of the arguments, if it has those
	Variables []string // names, if it has those
	Reason    string
}

// Dropped returns what the plugin does not get of the profile's extensions.
func (i *Invocation) Dropped() []Dropped {
	var dropped []Dropped
	if i.moreArgs != nil && i.argsPolicy != providerfile.ProfileSourcedCLIArgsAppend {
		d := Dropped{Extension: extensionAdditionalArgs, Reason: "the provider's profileSourcedCLIArgsPolicy is not Append"}
		var err error
		if d.Args, err = parseArgs(i.moreArgs); err != nil {
			d.Reason += fmt.Sprintf(", and the extension is invalid: %v", err)
		}
		dropped = append(dropped, d)
	}
	if i.moreEnv != nil {
		dropped = append(dropped, i.droppedEnv()...)
	}
	if i.config != nil && !i.exec.ProvideClusterInfo {
		dropped = append(dropped, Dropped{Extension: ExtensionConfig, Reason: "the provider's provideClusterInfo is not set"})
	}
	return dropped
}

func (i *Invocation) droppedEnv() []Dropped {
	more, err := parseEnv(i.moreEnv)
	d := Dropped{Extension: extensionAdditionalEnvs}
	switch i.envPolicy {
	case providerfile.ProfileSourcedEnvVarsAppendIfNotExists:
		d.Reason = "profileSourcedEnvVarsPolicy is AppendIfNotExists, and the provider sets them"
	case providerfile.ProfileSourcedEnvVarsReplace:
		return nil // all are used
	default:
		d.Reason = "the provider's profileSourcedEnvVarsPolicy is Ignore"
		if err != nil {
			d.Reason += fmt.Sprintf(", and the extension is not acceptable: %v", err)
			return []Dropped{d}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if !i.fromProfile[name] {
			d.Variables = append(d.Variables, name)
		}
	}
	if len(d.Variables) == 0 {
		return nil
	}
	return []Dropped{d}
}
