// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"

	"github.com/rollcall-dev/rollcall/internal/realfleet"
)

// The programs that the quickstart builds and runs.
const (
	controllerProgram = "cluster-inventory-api"
	pluginProgram     = "mc-credential-token-secret"
)

// The configuration files of a run.
const (
	controllerKubeconfigName = "controller.kubeconfig"
	providerFileName         = "providers.json"
)

// programs are the packages of the programs.
var programs = []string{
	"./examples/" + controllerProgram,
	"./plugins/token-secret/cmd/" + pluginProgram,
}

// startController runs the example controller against the hub. It also returns
// the tokens of the controller and the plugin for the hub.
func startController(ctx context.Context, h *realfleet.Hub, bin, dir string) (*process, []string, error) {
	controllerToken, err := h.IssueToken(ctx, h.ControllerAccount, nil)
	if err != nil {
		return nil, nil, err
	}
	controllerKubeconfig := filepath.Join(dir, controllerKubeconfigName)
	if err := h.WriteKubeconfig(controllerKubeconfig, controllerToken); err != nil {
		return nil, nil, err
	}
	pluginToken, err := h.IssueToken(ctx, h.PluginAccount, nil)
	if err != nil {
		return nil, nil, err
	}
	pluginKubeconfig := filepath.Join(dir, "plugin.kubeconfig")
	if err := h.WriteKubeconfig(pluginKubeconfig, pluginToken); err != nil {
		return nil, nil, err
	}
	providerFile := filepath.Join(dir, providerFileName)
	if err := writeProviderFile(providerFile, pluginKubeconfig); err != nil {
		return nil, nil, err
	}

	p, err := startProcess("controller", dir, filepath.Join(bin, controllerProgram),
		"--kubeconfig="+controllerKubeconfig,
		"--clusterprofile-provider-file="+providerFile,
		"--credential-plugin-dir="+bin,
		"--trusted-namespaces="+realfleet.FleetNamespace+","+realfleet.SecondNamespace,
		// The highest verbosity, to verify that no token is ever logged.
		"--zap-log-level=10", "--v=10",
	)
	return p, []string{controllerToken, pluginToken}, err
}

// writeProviderFile writes the provider file (KEP-5339), which names the plugin
// for the access provider of the profiles.
func writeProviderFile(path, pluginKubeconfig string) error {
	file, err := json.MarshalIndent(providerfile.File{
		Providers: []providerfile.Provider{{
			Name: realfleet.AccessProvider,
			ExecConfig: &clientcmdapi.ExecConfig{
				APIVersion:         "client.authentication.k8s.io/v1",
				Command:            pluginProgram,
				Args:               []string{"--kubeconfig=" + pluginKubeconfig, "--namespace=" + realfleet.TokenNamespace},
				ProvideClusterInfo: true,
			},
		}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, file, 0o600)
}

// Messages in the controller's log about a cluster.
const (
	engaged    = "Cluster engaged"
	disengaged = "Cluster disengaged"
	switched   = "Switched cluster connection"
	duplicate  = "Profile is a duplicate, its cluster has another name"
	tookOver   = "Profile removed, its cluster keeps its name and goes on with another profile"
)

// clusterName is the member's name in the controller: that of its profile.
func clusterName(m *realfleet.Member) string { return m.Namespace + "/" + m.Name }

// reconciledLine is the beginning of the line that the controller prints for a
// ConfigMap in the namespace default.
func reconciledLine(m *realfleet.Member, configMap string) string {
	return fmt.Sprintf("ConfigMap default/%s in cluster %q", configMap, clusterName(m))
}
