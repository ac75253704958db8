// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"flag"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/plugins/gcp"
	"github.com/rollcall-dev/rollcall/plugins/oidc"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

// Kinds of inventories, the values of --from.
const (
	Hub        = "hub"
	Kubeconfig = "kubeconfig"
	File       = "file"
	Kind       = "kind"
	ClusterAPI = "cluster-api"
)

var kinds = []string{Hub, Kubeconfig, File, Kind, ClusterAPI}

// providerFileVariable and pluginDirsVariable are the defaults of the flags for the
// provider file and the folders of plugins.
const (
	providerFileVariable = "MC_CREDENTIAL_PROVIDER_FILE"
	pluginDirsVariable   = "MC_CREDENTIAL_PLUGIN_DIRS"
)

// Flags select an inventory and configure its credentials.
type Flags struct {
	From          string
	Namespace     string // of the hub, instead of that of --namespace
	AllNamespaces bool
	Selector      string
	// ProfileName is the name of the only profile that is read from a hub, or "" for all.
	// It is no flag.
	ProfileName string
	// ListTimeout is how long the inventory may take to be listed.
	ListTimeout time.Duration

	// Credentials are the options of the credential plugins.
	Credentials credentials.Options

	files, dirs []string
	secretLabel string
	secretKey   string
	prefix      string
}

// AddFlags adds the flags to the command.
func (f *Flags) AddFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "Profiles of all namespaces of the hub")
	flags.StringVarP(&f.Selector, "selector", "l", "", "Label selector of profiles, such as env=prod,region!=eu")
	f.addCommonFlags(c)
}

// AddProfileFlags adds the flags to a command for which -n, -A and -l are about objects in
// the clusters, as in kubectl.
func (f *Flags) AddProfileFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.Namespace, "hub-namespace", "", "The `namespace` of the profiles in the hub (default that of the context)")
	flags.BoolVar(&f.AllNamespaces, "all-hub-namespaces", false, "Profiles of all namespaces of the hub")
	flags.StringVar(&f.Selector, "profile-selector", "", "Label selector of profiles, such as env=prod,region!=eu")
	f.addCommonFlags(c)
}

func (f *Flags) addCommonFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.From, "from", Hub, "The inventory: one of "+strings.Join(kinds, ", "))
	flags.DurationVar(&f.ListTimeout, "list-timeout", 30*time.Second, "How long the inventory may take to be listed")
	flags.StringArrayVar(&f.files, "file", nil, "With --from=file: a kubeconfig file, may be repeated (default KUBECONFIG or ~/.kube/config, and those in the working directory)")
	flags.StringArrayVar(&f.dirs, "dir", nil, "With --from=file: a folder of kubeconfig files, may be repeated")
	flags.StringVar(&f.secretLabel, "secret-label", kubeconfig.DefaultKubeconfigSecretLabel, "With --from=kubeconfig: the label of the Secrets, whose value is true")
	flags.StringVar(&f.secretKey, "secret-key", kubeconfig.DefaultKubeconfigSecretKey, "With --from=kubeconfig: the key of the kubeconfig in a Secret")
	flags.StringVar(&f.prefix, "kind-prefix", "", "With --from=kind: the prefix of the names of clusters")
	f.AddCredentialFlags(c)
	_ = c.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
}

// AddCredentialFlags adds the flags of the credential plugins.
func (f *Flags) AddCredentialFlags(c *cobra.Command) {
	flags := c.Flags()
	f.Credentials.ProviderFile = os.Getenv(providerFileVariable)
	f.Credentials.PluginDirs = dirs(os.Getenv(pluginDirsVariable))
	f.Credentials.MaxConcurrentRuns = 256 // plugins that hang must not delay those of other clusters
	f.Credentials.Plugins = []func() plugin.Plugin{
		func() plugin.Plugin { return gcp.New() },
		func() plugin.Plugin { return oidc.New() },
		func() plugin.Plugin { return tokensecret.New() },
	}
	goFlags := flag.NewFlagSet("", flag.ContinueOnError)
	f.Credentials.AddFlags(goFlags)
	flags.AddGoFlagSet(goFlags)
	// The defaults in docs and help must not depend on the environment.
	flags.Lookup("clusterprofile-provider-file").DefValue = ""
	flags.Lookup("credential-plugin-dir").DefValue = ""
	flags.Lookup("clusterprofile-provider-file").Usage += " (default $" + providerFileVariable + ")"
	flags.Lookup("credential-plugin-dir").Usage += " (default $" + pluginDirsVariable + ")"
}

// exec returns the options for commands in kubeconfigs.
func (f *Flags) exec() credentials.Options {
	return credentials.Options{PluginDirs: f.Credentials.PluginDirs, AllowedCommands: f.Credentials.AllowedCommands, Timeout: f.Credentials.Timeout, MaxConcurrentRuns: f.Credentials.MaxConcurrentRuns}
}

// dirs splits a list of folders as in PATH.
func dirs(list string) []string {
	return slices.DeleteFunc(strings.Split(list, string(os.PathListSeparator)), func(dir string) bool { return dir == "" })
}

func (f *Flags) validate() (labels.Selector, error) {
	if !slices.Contains(kinds, f.From) {
		return nil, command.Usagef("invalid --from %q: valid values are %s", f.From, strings.Join(kinds, ", "))
	}
	for _, only := range []struct {
		kind  string
		flags bool
		names string
	}{
		{File, len(f.files)+len(f.dirs) > 0, "--file and --dir"},
		{Kind, f.prefix != "", "--kind-prefix"},
	} {
		if only.flags && f.From != only.kind {
			return nil, command.Usagef("%s need --from=%s", only.names, only.kind)
		}
	}
	selector, err := labels.Parse(f.Selector)
	if err != nil {
		return nil, command.Usagef("invalid label selector of profiles: %v", err)
	}
	return selector, nil
}
