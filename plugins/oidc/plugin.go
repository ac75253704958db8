// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// Plugin is the credential plugin. Its fields are the values of its flags.
type Plugin struct {
	// Kubeconfig is the path of a kubeconfig for the hub. Default: the service
	// account of the pod.
	Kubeconfig string

	// ServiceAccount is the service account of the hub, as "namespace/name", whose
	// tokens are requested. Default: the one that the plugin's own token for the hub
	// belongs to.
	ServiceAccount string

	// AllowedAudiences are the audiences that profiles may choose, each with its
	// server. Default: the URL of the profile's server.
	AllowedAudiences []AllowedAudience

	// HubAudiences are the audiences of the hub's own API server, which profiles
	// must not choose. Default: the hub is asked before each token, with a request
	// for a token with its default audiences, which is not used. With TokenFile the
	// default is the audiences of the pod's token for the hub.
	HubAudiences []string

	// Lifetime is the lifetime of the requested token, at least 10 min. The hub may
	// choose another one. Default: 1 h.
	Lifetime time.Duration

	// TokenFile is the path of a token in a projected volume of the pod. No request
	// is sent then. Default: the token is requested from the hub.
	TokenFile string
}

var (
	_ plugin.Flagger   = &Plugin{}
	_ plugin.Describer = &Plugin{}
	_ plugin.Exampler  = &Plugin{}
	_ plugin.Explainer = &Plugin{}
)

// New returns the plugin with its defaults.
func New() *Plugin { return &Plugin{Lifetime: defaultLifetime} }

// Name implements plugin.Plugin.
func (p *Plugin) Name() string { return "mc-credential-oidc" }

// Version implements plugin.Plugin.
func (p *Plugin) Version() string { return plugin.BuildVersion() }

// Description implements plugin.Describer.
func (p *Plugin) Description() string {
	return `
It prints a short-lived token of a service account of the hub, for a member
cluster whose API server trusts the hub's issuer. The cluster's profile names the
member's audience, in the extension client.authentication.k8s.io/exec:

  {"audience": "https://c1.example.com:6443"}

A member must accept only tokens with an audience of its own. By default, that is
the https URL of the profile's server. With --allowed-audience, a profile may
choose other audiences. Each belongs to one server, so that no profile can have a
token for one member sent to another server:

  --allowed-audience=c1=https://c1.example.com:6443
  --allowed-audience=fleet-*=https://*.example.com:6443
  --allowed-audience=team-a-*=*

In the second form, the * stands for the same text in both. In the third, the
server is any: use it only with allowedServers or allowedProfileNamespaces in the
provider file. The audiences of the hub's own API server are always refused.

The provider must set provideClusterInfo. The environment variable KUBECONFIG
is ignored. Keep profileSourcedCLIArgsPolicy at Ignore, so that no profile can
set flags.`
}

// Example implements plugin.Exampler.
func (p *Plugin) Example() string {
	return `
# Print which token would be requested for the cluster, without requesting it
KUBERNETES_EXEC_INFO='{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{
  "cluster":{"server":"https://c1.example.com:6443","config":{"audience":"c1"}},"interactive":false}}' \
  mc-credential-oidc --kubeconfig=hub.kubeconfig --service-account=fleet/members \
  --allowed-audience=c1=https://c1.example.com:6443 --explain`
}

// AddFlags implements plugin.Flagger.
func (p *Plugin) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&p.Kubeconfig, "kubeconfig", p.Kubeconfig,
		"`path` of a kubeconfig for the hub (default: the service account of the pod)")
	flags.StringVar(&p.ServiceAccount, "service-account", p.ServiceAccount,
		"`namespace/name` of the hub's service account whose tokens are requested (default: the one that the plugin's own token belongs to)")
	flags.Func("allowed-audience",
		"`AUDIENCE=SERVER`: an audience that a profile may choose, and the server it belongs to; may be repeated (default: https://*=https://*, the URL of the server)",
		func(text string) error {
			allowed, err := parseAllowedAudience(text)
			p.AllowedAudiences = append(p.AllowedAudiences, allowed)
			return err
		})
	flags.Func("hub-audience", "`audience` of the hub's own API server, which is refused; may be repeated (default: the hub is asked, before each token)",
		func(audience string) error {
			p.HubAudiences = append(p.HubAudiences, audience)
			return checkAudience(audience)
		})
	flags.DurationVar(&p.Lifetime, "token-lifetime", p.Lifetime,
		"`duration` of the requested token's validity, at least 10m")
	flags.StringVar(&p.TokenFile, "token-file", p.TokenFile,
		"`path` of a token in a projected volume of the pod, which is printed if it has the audience (default: a token is requested from the hub)")
}

// Credential implements plugin.Plugin.
func (p *Plugin) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	audience, err := p.prepare(request)
	switch {
	case err != nil:
		return nil, err
	case p.TokenFile != "":
		return p.fromFile(audience)
	}
	return p.fromHub(ctx, audience)
}

// prepare checks the flags and returns the profile's audience.
func (p *Plugin) prepare(request plugin.Request) (string, error) {
	if p.TokenFile != "" && (p.Kubeconfig != "" || p.ServiceAccount != "") {
		return "", fmt.Errorf("%w: --token-file must not be combined with --kubeconfig and --service-account", plugin.ErrUsage)
	}
	return p.audience(request)
}

// Explain implements plugin.Explainer. It sends no request.
func (p *Plugin) Explain(_ context.Context, request plugin.Request) ([]string, error) {
	var steps []string
	for _, allowed := range p.allowedAudiences() {
		server := allowed.Server
		if server == AnyServer {
			server = "any server"
		}
		steps = append(steps, fmt.Sprintf("allow audience %s for %s", allowed.Audience, server))
	}
	steps = append(steps, "refuse the hub's own audiences: "+cmp.Or(strings.Join(p.HubAudiences, ", "), "those that it reports"))
	audience, err := p.prepare(request)
	if request.Cluster == nil && errors.Is(err, plugin.ErrBadRequest) {
		audience, err = "of the profile", nil
	}
	if err != nil {
		return steps, err
	}
	if p.TokenFile != "" {
		return append(steps, fmt.Sprintf("print the token in %s if its only audience is %s", p.TokenFile, audience)), nil
	}
	config, err := hubConfig(p.Kubeconfig)
	if err != nil {
		return steps, err
	}
	account, err := p.serviceAccount(config)
	if err != nil {
		return steps, err
	}
	return append(steps,
		fmt.Sprintf("connect to the hub at %s with %s", config.Host, cmp.Or(p.Kubeconfig, "the pod's service account")),
		fmt.Sprintf("request a token of service account %s with audience %s for %s, and print it", account, audience, p.Lifetime)), nil
}
