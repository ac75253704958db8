// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/internal/cli/gettoken"
	"github.com/rollcall-dev/rollcall/internal/cli/sources"
	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// markName is the name of the extension of entries that the command has added.
const markName = "rollcall.dev/mc-credential"

// mark is its content.
type mark struct {
	Inventory string `json:"inventory"` // the flags that select it
	Profile   string `json:"profile"`   // namespace and name
}

// contexts are those for the profiles of an inventory.
type contexts struct {
	inventory string
	list      []*entries
	all       bool            // of all profiles: others have gone
	failed    map[string]bool // the profiles for which there is none
}

// entries are those of one context, which have the same name.
type entries struct {
	name    string
	profile string
	cluster clientcmdv1.Cluster
	user    clientcmdv1.AuthInfo
	context clientcmdv1.Context
}

func (c *contexts) add(e *entries) error {
	for _, other := range c.list {
		if other.name == e.name {
			return fmt.Errorf("profiles %s and %s have the same cluster name %q: choose one of them", other.profile, e.profile, e.name)
		}
	}
	m, err := json.Marshal(mark{Inventory: c.inventory, Profile: e.profile})
	if err != nil {
		return err
	}
	extensions := []clientcmdv1.NamedExtension{{Name: markName, Extension: runtime.RawExtension{Raw: m}}}
	e.cluster.Extensions, e.user.Extensions, e.context.Extensions = extensions, extensions, extensions
	c.list = append(c.list, e)
	return nil
}

// inventoryOf returns what distinguishes the inventory from others in a file.
func inventoryOf(args sources.Args, opened *sources.Inventory) string {
	flags := args.Inventory
	if opened.Namespace != "" {
		flags = append(slices.Clip(flags), command.Arg("namespace", opened.Namespace))
	}
	return strings.Join(flags, " ")
}

// context returns the entries for the profile. It runs no plugin.
func (o *options) context(ctx context.Context, profile *inventory.Profile, method credentials.Method, args sources.Args) (*entries, error) {
	access, err := method.Resolve(ctx, profile)
	if err != nil {
		return nil, err
	}
	defer access.Release()
	config := access.PortableRESTConfig()
	key := inventory.KeyOf(profile).String()
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("profile %s: %w", key, err)
	}
	proxy, err := proxyOf(config)
	if err != nil {
		return nil, fmt.Errorf("profile %s: proxy: %w", key, err)
	}
	e := &entries{name: o.prefix + inventory.ClusterName(profile), profile: key}
	e.cluster = clientcmdv1.Cluster{
		Server: access.Server(), CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName,
		InsecureSkipTLSVerify: config.Insecure, ProxyURL: proxy, DisableCompression: config.DisableCompression,
	}
	e.context = clientcmdv1.Context{Cluster: e.name, AuthInfo: e.name}
	e.user = clientcmdv1.AuthInfo{
		Exec: &clientcmdv1.ExecConfig{
			APIVersion:      "client.authentication.k8s.io/v1",
			Command:         o.command,
			Args:            o.getToken(profile, access, args),
			InteractiveMode: clientcmdv1.NeverExecInteractiveMode,
			InstallHint:     "Install mc-credential of https://rollcall.dev, or run 'mc-credential kubeconfig' again if it was moved.",
		},
		Impersonate: config.Impersonate.UserName, ImpersonateUID: config.Impersonate.UID,
		ImpersonateGroups: config.Impersonate.Groups, ImpersonateUserExtra: config.Impersonate.Extra,
	}
	return e, nil
}

// getToken returns the arguments for the credential of the profile.
func (o *options) getToken(profile *inventory.Profile, access *credentials.Access, args sources.Args) []string {
	all := append([]string{gettoken.Name}, args.Inventory...)
	if o.sources.UsesHub() {
		all = append(all, command.Arg("namespace", profile.Namespace))
	}
	all = append(all, args.Credentials...)
	return append(all, command.Arg(gettoken.ServerFlag, access.Server()), inventory.KeyOf(profile).String())
}

// proxyOf returns the URL of the configuration's own proxy, or "".
func proxyOf(config *rest.Config) (string, error) {
	if config.Proxy == nil {
		return "", nil
	}
	request, err := http.NewRequest(http.MethodGet, config.Host, http.NoBody)
	if err != nil {
		return "", err
	}
	proxy, err := config.Proxy(request)
	if err != nil || proxy == nil {
		return "", err
	}
	if proxy.User != nil {
		return "", fmt.Errorf("%s needs a password, which is not copied into another kubeconfig", proxy.Host)
	}
	return proxy.String(), nil
}
