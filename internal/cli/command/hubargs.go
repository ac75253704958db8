// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// HubArgs returns the flags with which a process in any folder, with any KUBECONFIG, uses
// the same context of the same kubeconfig for the hub. They are none in a pod without a
// kubeconfig. The namespace is not among them.
func (e *Env) HubArgs() ([]string, error) {
	config, err := e.Kube.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("configuration for the hub: %w", err)
	}
	name := config.CurrentContext
	if e.overrides.CurrentContext != "" {
		name = e.overrides.CurrentContext
	}
	var args []string
	if context := config.Contexts[name]; context != nil {
		file := context.LocationOfOrigin
		cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
		if cluster != nil && cluster.LocationOfOrigin != file || user != nil && user.LocationOfOrigin != file {
			return nil, fmt.Errorf("context %q of the hub uses several kubeconfig files: put it into one and set --kubeconfig", name)
		}
		if file, err = filepath.Abs(file); err != nil {
			return nil, err
		}
		args = append(args, Arg(clientcmd.RecommendedConfigPathFlag, file), Arg(clientcmd.FlagContext, name))
	}
	if user := e.overrides.AuthInfo.Impersonate; user != "" {
		args = append(args, Arg(clientcmd.FlagImpersonate, user))
	}
	for _, group := range e.overrides.AuthInfo.ImpersonateGroups {
		args = append(args, Arg(clientcmd.FlagImpersonateGroup, group))
	}
	return args, nil
}

// Arg returns the argument that sets a flag.
func Arg(flag, value string) string { return "--" + flag + "=" + value }
