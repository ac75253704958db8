// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/execplugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// FromRESTConfig returns an Access for an existing configuration, as the function
// FromRESTConfig does. If the configuration has an ExecProvider, the resolver runs it
// with its time limit, and shares a run with all configurations for which it would be
// the same. The command must be an absolute path, or a name in one of
// Options.PluginDirs, and one of Options.AllowedCommands unless that is empty. The
// ExecProvider is never interactive. It cannot be combined with other credentials,
// files or functions in the configuration, except Impersonate and Proxy.
//
// The profile is that of the cluster, for errors. They are an *Error, around ErrDenied
// if the command is not allowed. The name of the command is the provider's name in
// metrics.
func (r *Resolver) FromRESTConfig(profile inventory.Key, config *rest.Config) (*Access, error) {
	if config.ExecProvider == nil {
		return FromRESTConfig(config), nil
	}
	access, err := r.fromExecConfig(profile, rest.CopyConfig(config))
	if err != nil {
		return nil, &Error{Profile: profile, Err: err}
	}
	return access, nil
}

func (r *Resolver) fromExecConfig(profile inventory.Key, config *rest.Config) (*Access, error) {
	if r.closing.Err() != nil {
		return nil, ErrClosed
	}
	provider := providerfile.Provider{Name: filepath.Base(config.ExecProvider.Command), ExecConfig: config.ExecProvider}
	providers, err := providerfile.Complete("exec", []providerfile.Provider{provider}, func(p *providerfile.Provider) error {
		return r.check(p, nil)
	})
	if err != nil {
		return nil, err
	}
	provider = providers[0]
	e, err := configEndpoint(config)
	if err != nil {
		return nil, err
	}
	extensions, err := execExtensions(config.ExecProvider.Config)
	if err != nil {
		return nil, err
	}
	digests, _ := r.allowed.digests(provider.ExecConfig.Command)
	invocation, err := execplugin.New(&provider, digests, &clientcmdv1.Cluster{Extensions: extensions}, e.info())
	if err != nil {
		return nil, err
	}
	return newManagedAccess(r, profile, provider.Name, e, invocation), nil
}

// configEndpoint returns the endpoint of a configuration whose credential a plugin
// obtains.
func configEndpoint(config *rest.Config) (*endpoint, error) {
	others := map[string]bool{
		"BearerToken":     config.BearerToken != "",
		"BearerTokenFile": config.BearerTokenFile != "",
		"Username":        config.Username != "" || config.Password != "",
		"AuthProvider":    config.AuthProvider != nil,
		"CertData":        len(config.CertData) > 0 || len(config.KeyData) > 0,
		"CertFile":        config.CertFile != "" || config.KeyFile != "",
		"CAFile":          config.CAFile != "",
		"Transport":       config.Transport != nil || config.WrapTransport != nil || config.Dial != nil,
	}
	for _, field := range slices.Sorted(maps.Keys(others)) {
		if others[field] {
			return nil, fmt.Errorf("%s cannot be combined with ExecProvider", field)
		}
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, errors.New("server: not a URL")
	}
	if _, err := parseServer(server.String(), false); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return &endpoint{
		Server:             server.String(),
		CAData:             slices.Clone(config.CAData),
		ServerName:         config.ServerName,
		Insecure:           config.Insecure,
		ProxyURL:           proxyOf(config),
		DisableCompression: config.DisableCompression,
		Impersonate:        config.Impersonate,
	}, nil
}

// execExtensions returns the extension of a cluster that has the plugin's config.
func execExtensions(config runtime.Object) ([]clientcmdv1.NamedExtension, error) {
	if config == nil {
		return nil, nil
	}
	var raw []byte
	if unknown, ok := config.(*runtime.Unknown); ok {
		raw = unknown.Raw
	} else {
		var err error
		if raw, err = json.Marshal(config); err != nil {
			return nil, fmt.Errorf("config of the exec plugin: %w", err)
		}
	}
	return []clientcmdv1.NamedExtension{{Name: execplugin.ExtensionConfig, Extension: runtime.RawExtension{Raw: raw}}}, nil
}
