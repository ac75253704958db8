// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package providerfile_test

import (
	"fmt"

	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// Other programs that know KEP-5339 ignore the key rollcall.
func ExampleParse() {
	file, err := providerfile.Parse("providers.yaml", []byte(`
providers:
- name: secretreader
  execConfig:
    apiVersion: client.authentication.k8s.io/v1
    command: mc-credential-token-secret
    args: ["--namespace=clusters"]
    provideClusterInfo: true
  rollcall:
    allowedServers: ["*.example.com"]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, provider := range file.Providers {
		fmt.Println(provider.Name, provider.ExecConfig.Command, provider.Rollcall.AllowedServers)
	}
	// Output: secretreader mc-credential-token-secret [*.example.com]
}

// Errors name the file, the entry and the field.
func ExampleParse_errors() {
	_, err := providerfile.Parse("providers.yaml", []byte(`
providers:
- name: secretreader
  execConfig:
    apiVersion: client.authentication.k8s.io/v1
    command: mc-credential-token-secret
    arguments: ["--namespace=clusters"]
`))
	fmt.Println(err)
	// Output: provider file providers.yaml: providers[0] ("secretreader"): unknown field "execConfig.arguments"
}
