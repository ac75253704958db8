// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// Extensions of an access provider's cluster.
const (
	// ExtensionConfig is the config for the plugin.
	ExtensionConfig         = "client.authentication.k8s.io/exec"
	extensionAdditionalArgs = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
	extensionAdditionalEnvs = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
)

// readExtensions returns these extensions, as JSON.
func readExtensions(cluster *clientcmdv1.Cluster) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	for i := range cluster.Extensions {
		name := cluster.Extensions[i].Name
		switch name {
		case ExtensionConfig, extensionAdditionalArgs, extensionAdditionalEnvs:
		default:
			continue
		}
		if _, twice := found[name]; twice {
			return nil, fmt.Errorf("extension %s: is a duplicate", name)
		}
		raw, err := rawJSON(&cluster.Extensions[i].Extension)
		if err != nil {
			return nil, fmt.Errorf("extension %s: %w", name, err)
		}
		found[name] = raw
	}
	return found, nil
}

// rawJSON returns nil for an extension without content.
func rawJSON(extension *runtime.RawExtension) (json.RawMessage, error) {
	raw := extension.Raw
	if raw == nil && extension.Object != nil {
		var err error
		if raw, err = json.Marshal(extension.Object); err != nil {
			return nil, errors.New("not JSON")
		}
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("not JSON")
	}
	return slices.Clone(raw), nil
}

func joinArgs(provider *providerfile.Provider, raw json.RawMessage) ([]string, error) {
	args := slices.Clone(provider.ExecConfig.Args)
	if raw == nil || provider.ProfileSourcedCLIArgsPolicy != providerfile.ProfileSourcedCLIArgsAppend {
		return args, nil
	}
	more, err := parseArgs(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errdefs.ErrInvalidProfile, err)
	}
	return append(args, more...), nil
}

// parseArgs parses ["a","b"], and {"args":["a","b"]}, since the CRD's schema
// requires an object.
func parseArgs(raw json.RawMessage) ([]string, error) {
	var args []*string
	if rules.DecodeKnown(raw, &args) != nil {
		var object map[string][]*string
		if err := rules.DecodeKnown(raw, &object); err != nil || len(object) != 1 || object["args"] == nil {
			return nil, errors.New(`must be an array of strings, or {"args":[…]} around one`)
		}
		args = object["args"]
	}
	texts := make([]string, 0, len(args))
	for n, arg := range args {
		switch {
		case arg == nil:
			return nil, fmt.Errorf("argument %d is not a string", n)
		case strings.ContainsRune(*arg, 0):
			return nil, fmt.Errorf("argument %d has a NUL character", n)
		case len(*arg)+1 > maxVariableLength:
			return nil, fmt.Errorf("argument %d is longer than %d bytes", n, maxVariableLength)
		}
		texts = append(texts, *arg)
	}
	return texts, nil
}

// joinEnv returns the provider's variables in their order, then those that the
// profile adds, by name, and which of the profile's are used.
func joinEnv(
	provider *providerfile.Provider, raw json.RawMessage,
) (env []clientcmdapi.ExecEnvVar, fromProfile map[string]bool, err error) {
	env = slices.Clone(provider.ExecConfig.Env)
	policy := provider.ProfileSourcedEnvVarsPolicy
	if raw == nil || policy == "" || policy == providerfile.ProfileSourcedEnvVarsIgnore {
		return env, nil, nil
	}
	more, err := parseEnv(raw)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if len(provider.Rollcall.AllowedProfileEnvVars) > 0 && !rules.MatchesAny(provider.Rollcall.AllowedProfileEnvVars, name) {
			return nil, nil, fmt.Errorf("%w: variable %s is not among the provider's allowedProfileEnvVars", errdefs.ErrDenied, name)
		}
	}
	fromProfile = make(map[string]bool, len(more))
	for n := range env {
		value, both := more[env[n].Name]
		if both && policy == providerfile.ProfileSourcedEnvVarsReplace {
			env[n].Value = value
			fromProfile[env[n].Name] = true
		}
		delete(more, env[n].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		env = append(env, clientcmdapi.ExecEnvVar{Name: name, Value: more[name]})
		fromProfile[name] = true
	}
	return env, fromProfile, nil
}

func parseEnv(raw json.RawMessage) (map[string]string, error) {
	var variables map[string]*string
	if err := rules.DecodeKnown(raw, &variables); err != nil {
		return nil, fmt.Errorf("%w: must be an object whose values are strings and whose names are different", errdefs.ErrInvalidProfile)
	}
	env := make(map[string]string, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		value := variables[name]
		switch {
		case !rules.IsVariableName(name):
			return nil, fmt.Errorf("%w: %q is not the name of a variable", errdefs.ErrInvalidProfile, name)
		case rules.IsDangerousVariable(name):
			return nil, fmt.Errorf("%w: variable %s is not accepted from a profile", errdefs.ErrDenied, name)
		case value == nil:
			return nil, fmt.Errorf("%w: the value of %s is not a string", errdefs.ErrInvalidProfile, name)
		case strings.ContainsRune(*value, 0):
			return nil, fmt.Errorf("%w: the value of %s has a NUL character", errdefs.ErrInvalidProfile, name)
		case len(name)+len(*value)+2 > maxVariableLength:
			return nil, fmt.Errorf("%w: the value of %s is longer than %d bytes", errdefs.ErrInvalidProfile, name, maxVariableLength)
		}
		env[name] = *value
	}
	return env, nil
}
