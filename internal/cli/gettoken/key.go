// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gettoken

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/internal/cli/sources"
)

// key has all that decides which credential it is, as far as it is known without a
// request: a stored credential is only used for an equal one. The rest is what the
// profile says. The server is that of the profile when the credential was obtained.
type key struct {
	Program     string
	Inventory   []string
	Credentials []string
	Hub         any
	Namespace   string
	Selector    string
	Profile     string
	Server      string
	Providers   string // the content of the provider file
	Environment []string
}

// identityVariables are environment variables that decide which identity plugins use.
// Others, of which many differ between terminals, are not part of the key.
var (
	identityVariables = []string{"HOME", "USERPROFILE", "KUBECONFIG"}
	identityPrefixes  = []string{
		"AAD_", "ALIBABA_", "AWS_", "AZURE_", "CLOUDSDK_", "GCE_METADATA_", "GOOGLE_", "IDENTITY_", "MSI_", "OCI_", "OS_", "VAULT_",
	}
)

// newKey returns the key for the profile of that name.
func (o *options) newKey(name string) (*key, error) {
	args, err := o.sources.Args(o.env)
	if err != nil {
		return nil, err
	}
	k := &key{
		Program: "mc-credential " + Name, Inventory: args.Inventory, Credentials: args.Credentials,
		Selector: o.sources.Selector, Profile: name, Server: o.server,
	}
	for _, variable := range os.Environ() {
		variableName, _, _ := strings.Cut(variable, "=")
		hasPrefix := func(prefix string) bool { return strings.HasPrefix(variableName, prefix) }
		if slices.Contains(identityVariables, variableName) || slices.ContainsFunc(identityPrefixes, hasPrefix) {
			k.Environment = append(k.Environment, variable)
		}
	}
	slices.Sort(k.Environment)
	if !o.sources.HasPaths() {
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		k.Inventory = append(k.Inventory, "--dir="+dir)
	}
	if file := o.sources.Credentials.ProviderFile; file != "" && o.sources.From == sources.Hub {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("provider file: %w", err)
		}
		k.Providers = string(content)
	}
	if o.sources.UsesHub() {
		if err := o.addHub(k); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// addHub adds what identifies the hub and the user there. Secrets are not part of it:
// they may be renewed.
func (o *options) addHub(k *key) error {
	config, err := o.env.HubConfig()
	if err != nil {
		return err
	}
	var command any
	if exec := config.ExecProvider; exec != nil {
		command = []any{exec.Command, exec.Args, exec.Env}
	}
	k.Hub = []any{
		config.Host, config.APIPath, config.CAData, config.CAFile, config.ServerName, config.Insecure,
		config.Username, config.CertData, config.CertFile, config.BearerTokenFile, command, config.Impersonate,
	}
	if o.sources.AllNamespaces {
		return nil
	}
	k.Namespace, err = o.env.Namespace()
	return err
}

// chainVariable has the digests of the keys for which this process and its parents were
// started as plugins.
const chainVariable = "MC_CREDENTIAL_GET_TOKEN_CHAIN"

// enter returns an error if this process was started to obtain the credential that it
// needs itself: the context of the hub would be one that needs the hub.
func (k *key) enter() error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(text)
	own := hex.EncodeToString(digest[:8])
	chain := strings.Fields(os.Getenv(chainVariable))
	if slices.Contains(chain, own) {
		return fmt.Errorf("the credential of profile %s is needed to read the profile: choose a --context for the hub that does not use get-token", k.Profile)
	}
	return os.Setenv(chainVariable, strings.Join(append(chain, own), " "))
}
