// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import "sigs.k8s.io/yaml"

// kuberc is what kubectl reads of a kuberc, in kubectl.config.k8s.io/v1beta1. Its Go type
// is in k8s.io/kubectl, which would double the size of this program.
type kuberc struct {
	APIVersion                string           `json:"apiVersion"`
	Kind                      string           `json:"kind"`
	CredentialPluginPolicy    string           `json:"credentialPluginPolicy"`
	CredentialPluginAllowlist []allowlistEntry `json:"credentialPluginAllowlist"`
}

type allowlistEntry struct {
	Command string `json:"command"`
}

// printKuberc prints the kuberc with which kubectl runs this program alone.
func (o *options) printKuberc() error {
	data, err := yaml.Marshal(kuberc{
		APIVersion: "kubectl.config.k8s.io/v1beta1", Kind: "Preference",
		CredentialPluginPolicy:    "Allowlist",
		CredentialPluginAllowlist: []allowlistEntry{{Command: o.command}},
	})
	if err != nil {
		return err
	}
	return o.print(data)
}
