// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"cmp"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// maxVariableLength is how long one argument or one variable ("NAME=value"
// and a NUL) may be on Linux.
const maxVariableLength = 128 << 10

// Invocation defines a run of a plugin. Two that are equal, in their exported
// fields, obtain the same credential. It does not change.
type Invocation struct {
	Command   string
	SHA256    []string // the executable must have one of these digests, if any
	InProcess string   // the plugin in this process to run instead, or ""
	Args      []string
	Env       []clientcmdapi.ExecEnvVar
	Inherited []string // patterns for the variables of this process, nil for all
	ExecInfo  string   // the request, an ExecCredential in JSON
	Hint      string   // how to install the plugin

	exec   *clientcmdapi.ExecConfig // the provider's
	config json.RawMessage          // the profile's, or nil

	// For Environment and Dropped.
	argsPolicy  providerfile.ProfileSourcedCLIArgsPolicy
	envPolicy   providerfile.ProfileSourcedEnvVarsPolicy
	moreArgs    json.RawMessage // the profile's, or nil
	moreEnv     json.RawMessage // the profile's, or nil
	fromProfile map[string]bool // the names of the profile's variables that are used
}

// Name returns the plugin's name for logs.
func (i *Invocation) Name() string { return cmp.Or(i.InProcess, i.Command) }

// New combines what the provider and the cluster of a profile define, by the
// provider's policies. The executable must have one of the digests, if any. The
// info is for plugins that get the cluster's information; New adds the config.
func New(
	provider *providerfile.Provider, digests []string, cluster *clientcmdv1.Cluster, info clientauthenticationv1.Cluster,
) (*Invocation, error) {
	extensions, err := readExtensions(cluster)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errdefs.ErrInvalidProfile, err)
	}
	exec := provider.ExecConfig
	i := &Invocation{
		Command:    exec.Command,
		SHA256:     digests,
		InProcess:  provider.Rollcall.InProcess,
		Inherited:  provider.Rollcall.InheritedEnvVars,
		Hint:       exec.InstallHint,
		exec:       exec,
		config:     extensions[ExtensionConfig],
		argsPolicy: provider.ProfileSourcedCLIArgsPolicy,
		envPolicy:  provider.ProfileSourcedEnvVarsPolicy,
		moreArgs:   extensions[extensionAdditionalArgs],
		moreEnv:    extensions[extensionAdditionalEnvs],
	}
	if i.Args, err = joinArgs(provider, i.moreArgs); err != nil {
		return nil, fmt.Errorf("extension %s: %w", extensionAdditionalArgs, err)
	}
	if i.Env, i.fromProfile, err = joinEnv(provider, i.moreEnv); err != nil {
		return nil, fmt.Errorf("extension %s: %w", extensionAdditionalEnvs, err)
	}
	if i.ExecInfo, err = i.execInfo(info); err != nil {
		return nil, err
	}
	return i, nil
}

// environment returns the environment of the process, or of the plugin in this
// process: what it inherits of our own, what provider and profile set, and the
// request. Of variables of the same name, the last one counts.
func (i *Invocation) environment(own []string) []string {
	variables := i.variables(own)
	env := make([]string, len(variables))
	for n, variable := range variables {
		env[n] = variable.Name + "=" + variable.Value
	}
	return env
}

// execInfo returns the request to the plugin. As in client-go, there is always
// one, but it has the cluster's information only if the provider wants that.
func (i *Invocation) execInfo(info clientauthenticationv1.Cluster) (string, error) {
	request := clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{Kind: "ExecCredential", APIVersion: i.exec.APIVersion},
	}
	if i.exec.ProvideClusterInfo {
		info.Config = runtime.RawExtension{Raw: i.config}
		request.Spec.Cluster = &info
	}
	text, err := json.Marshal(&request)
	if err != nil {
		return "", fmt.Errorf("%w: cluster information: %w", errdefs.ErrInvalidProfile, err)
	}
	if length := len(rules.ExecInfoVariable) + len(text) + 2; length > maxVariableLength && i.InProcess == "" {
		return "", fmt.Errorf("%w: the cluster information for the plugin takes %d bytes and an environment variable holds %d: "+
			"certificate-authority-data has %d bytes, extension %s has %d",
			errdefs.ErrInvalidProfile, length, maxVariableLength, len(info.CertificateAuthorityData), ExtensionConfig, len(i.config))
	}
	return string(text), nil
}

// ExecConfig returns the configuration with which client-go runs the executable
// at the path in the same way.
func (i *Invocation) ExecConfig(path string) *clientcmdapi.ExecConfig {
	exec := &clientcmdapi.ExecConfig{
		APIVersion:         i.exec.APIVersion,
		Command:            path,
		Args:               append([]string(nil), i.Args...),
		Env:                append([]clientcmdapi.ExecEnvVar(nil), i.Env...),
		InstallHint:        i.Hint,
		ProvideClusterInfo: i.exec.ProvideClusterInfo,
		InteractiveMode:    clientcmdapi.NeverExecInteractiveMode,
		StdinUnavailable:   true,
		PluginPolicy: clientcmdapi.PluginPolicy{
			PolicyType: clientcmdapi.PluginPolicyAllowlist,
			Allowlist:  []clientcmdapi.AllowlistEntry{{Command: path}},
		},
	}
	if i.config != nil {
		exec.Config = &runtime.Unknown{
			Raw:         append([]byte(nil), i.config...),
			ContentType: runtime.ContentTypeJSON,
		}
	}
	return exec
}
