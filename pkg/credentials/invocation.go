// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// Extensions of an access provider's cluster.
const (
	extensionConfig         = "client.authentication.k8s.io/exec"
	extensionAdditionalArgs = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
	extensionAdditionalEnvs = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
)

// execInfoVariable is the environment variable with the request to the plugin.
const execInfoVariable = "KUBERNETES_EXEC_INFO"

// maxVariableLength is how long one argument or one variable ("NAME=value"
// and a NUL) may be on Linux.
const maxVariableLength = 128 << 10

// invocation is one way to run a plugin. Two that are equal in all exported
// fields give the same credential. It is not changed once made.
type invocation struct {
	Command   string
	SHA256    []string // the digests of which the executable must have one, if any
	InProcess string   // the plugin of this process to run instead, if any
	Args      []string
	Env       []clientcmdapi.ExecEnvVar
	Inherited []string // what Env is added to, nil for the whole environment
	ExecInfo  string   // the request, an ExecCredential in JSON
	Hint      string   // how to install the plugin

	apiVersion         string
	provideClusterInfo bool
	config             json.RawMessage // the profile's, or nil
}

// name returns what the plugin is called in logs.
func (i *invocation) name() string { return cmp.Or(i.InProcess, i.Command) }

// newInvocation joins what the provider says with what the profile adds to it,
// by the provider's policies. The digests are those of the allowlist.
func newInvocation(provider *Provider, digests []string, cluster *clientcmdv1.Cluster, e *endpoint) (*invocation, error) {
	extensions, err := readExtensions(cluster)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidProfile, err)
	}
	exec := provider.exec()
	i := &invocation{
		Command:            exec.Command,
		SHA256:             digests,
		InProcess:          provider.InProcess,
		Inherited:          provider.InheritedEnvVars,
		Hint:               exec.InstallHint,
		apiVersion:         exec.APIVersion,
		provideClusterInfo: exec.ProvideClusterInfo,
		config:             extensions[extensionConfig],
	}
	if i.Args, err = joinArgs(provider, extensions[extensionAdditionalArgs]); err != nil {
		return nil, fmt.Errorf("extension %s: %w", extensionAdditionalArgs, err)
	}
	if i.Env, err = joinEnv(provider, extensions[extensionAdditionalEnvs]); err != nil {
		return nil, fmt.Errorf("extension %s: %w", extensionAdditionalEnvs, err)
	}
	if i.ExecInfo, err = i.execInfo(e); err != nil {
		return nil, err
	}
	return i, nil
}

// readExtensions returns the three extensions that matter here, as JSON.
func readExtensions(cluster *clientcmdv1.Cluster) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	for i := range cluster.Extensions {
		name := cluster.Extensions[i].Name
		switch name {
		case extensionConfig, extensionAdditionalArgs, extensionAdditionalEnvs:
		default:
			continue
		}
		if _, twice := found[name]; twice {
			return nil, fmt.Errorf("extension %s: is there twice", name)
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

func joinArgs(provider *Provider, raw json.RawMessage) ([]string, error) {
	args := slices.Clone(provider.exec().Args)
	if raw == nil || provider.ProfileSourcedCLIArgsPolicy != ProfileSourcedCLIArgsAppend {
		return args, nil
	}
	more, err := parseArgs(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidProfile, err)
	}
	return append(args, more...), nil
}

// parseArgs reads ["a","b"], and {"args":["a","b"]}, which is the form that the
// CRD's schema lets pass.
func parseArgs(raw json.RawMessage) ([]string, error) {
	var args []*string
	if json.Unmarshal(raw, &args) != nil {
		var object map[string][]*string
		if err := json.Unmarshal(raw, &object); err != nil || len(object) != 1 || object["args"] == nil {
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

// joinEnv keeps the provider's order and puts what the profile adds behind it,
// by name.
func joinEnv(provider *Provider, raw json.RawMessage) ([]clientcmdapi.ExecEnvVar, error) {
	env := slices.Clone(provider.exec().Env)
	policy := provider.ProfileSourcedEnvVarsPolicy
	if raw == nil || policy == "" || policy == ProfileSourcedEnvVarsIgnore {
		return env, nil
	}
	more, err := parseEnv(raw)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if len(provider.AllowedProfileEnvVars) > 0 && !anyGlobMatches(provider.AllowedProfileEnvVars, name) {
			return nil, fmt.Errorf("%w: variable %s is not among the provider's allowedProfileEnvVars", ErrDenied, name)
		}
	}
	for n := range env {
		value, both := more[env[n].Name]
		if both && policy == ProfileSourcedEnvVarsReplace {
			env[n].Value = value
		}
		delete(more, env[n].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		env = append(env, clientcmdapi.ExecEnvVar{Name: name, Value: more[name]})
	}
	return env, nil
}

func parseEnv(raw json.RawMessage) (map[string]string, error) {
	var variables map[string]*string
	if err := json.Unmarshal(raw, &variables); err != nil {
		return nil, fmt.Errorf("%w: must be an object whose values are strings", ErrInvalidProfile)
	}
	env := make(map[string]string, len(variables))
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		value := variables[name]
		switch {
		case !isVariableName(name):
			return nil, fmt.Errorf("%w: %q is not the name of a variable", ErrInvalidProfile, name)
		case isDangerousVariable(name):
			return nil, fmt.Errorf("%w: variable %s is not accepted from a profile", ErrDenied, name)
		case value == nil:
			return nil, fmt.Errorf("%w: the value of %s is not a string", ErrInvalidProfile, name)
		case strings.ContainsRune(*value, 0):
			return nil, fmt.Errorf("%w: the value of %s has a NUL character", ErrInvalidProfile, name)
		case len(name)+len(*value)+2 > maxVariableLength:
			return nil, fmt.Errorf("%w: the value of %s is longer than %d bytes", ErrInvalidProfile, name, maxVariableLength)
		}
		env[name] = *value
	}
	return env, nil
}

// environment returns what a process of the plugin is given: what it inherits
// of our own, what provider and profile set, and the request.
func (i *invocation) environment(own []string) []string {
	env := make([]string, 0, len(own)+len(i.Env)+1)
	for _, variable := range own {
		name, _, _ := strings.Cut(variable, "=")
		if i.Inherited == nil || anyGlobMatches(i.Inherited, name) {
			env = append(env, variable)
		}
	}
	for _, variable := range i.Env {
		env = append(env, variable.Name+"="+variable.Value)
	}
	return append(env, execInfoVariable+"="+i.ExecInfo)
}

// execInfo returns the request to the plugin. As with client-go it is always
// there, but tells of the cluster only where the provider says so.
func (i *invocation) execInfo(e *endpoint) (string, error) {
	request := clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{Kind: "ExecCredential", APIVersion: i.apiVersion},
	}
	if i.provideClusterInfo {
		request.Spec.Cluster = &clientauthenticationv1.Cluster{
			Server:                   e.Server,
			TLSServerName:            e.ServerName,
			InsecureSkipTLSVerify:    e.Insecure,
			CertificateAuthorityData: e.CAData,
			ProxyURL:                 e.ProxyURL,
			DisableCompression:       e.DisableCompression,
			Config:                   runtime.RawExtension{Raw: i.config},
		}
	}
	text, err := json.Marshal(&request)
	if err != nil {
		return "", fmt.Errorf("%w: cluster information: %w", ErrInvalidProfile, err)
	}
	if length := len(execInfoVariable) + len(text) + 2; length > maxVariableLength && i.InProcess == "" {
		return "", fmt.Errorf("%w: the cluster information for the plugin takes %d bytes and an environment variable holds %d: "+
			"certificate-authority-data has %d bytes, extension %s has %d",
			ErrInvalidProfile, length, maxVariableLength, len(e.CAData), extensionConfig, len(i.config))
	}
	return string(text), nil
}
