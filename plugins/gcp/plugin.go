// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/filecache"
)

// Scopes of tokens.
const (
	scopeCloudPlatform = "https://www.googleapis.com/auth/cloud-platform"
	scopeEmail         = "https://www.googleapis.com/auth/userinfo.email"
)

// Plugin is the credential plugin. Its fields are the values of its flags. It is
// safe for concurrent use once they are set.
type Plugin struct {
	// Scopes are the scopes of the tokens. Default: cloud-platform, and
	// userinfo.email, from which clusters take the user's name.
	Scopes []string

	// Account is the service account whose token is requested from the metadata
	// server, or that a service account key must belong to. Default: that of the
	// metadata server or the key.
	Account string

	// Impersonate is the service account to impersonate if the profile chooses
	// none. Default: none, the tokens are those of the application default
	// credentials.
	Impersonate Impersonation

	// AllowedImpersonations are those that a profile may choose, besides
	// Impersonate.
	AllowedImpersonations []Impersonation

	// QuotaProject is billed for impersonation requests. Default:
	// GOOGLE_CLOUD_QUOTA_PROJECT, or that of the credentials file.
	QuotaProject string

	// UniverseDomain is the domain of Google's services. Default: that of the
	// credentials file, or googleapis.com.
	UniverseDomain string

	// IAMCredentialsURL is the URL of the IAM Credentials API, for private
	// endpoints. Default: https://iamcredentials. and the universe domain.
	IAMCredentialsURL string

	// Cache stores tokens. Default: none are stored.
	Cache filecache.Cache

	// retryDelay is the delay before the first retry of a request, plus or minus
	// a half. It doubles with each retry.
	retryDelay time.Duration
}

var (
	_ plugin.Flagger   = &Plugin{}
	_ plugin.Describer = &Plugin{}
	_ plugin.Exampler  = &Plugin{}
	_ plugin.Explainer = &Plugin{}
)

// New returns the plugin with its defaults.
func New() *Plugin {
	return &Plugin{
		Scopes:     []string{scopeCloudPlatform, scopeEmail},
		retryDelay: 250 * time.Millisecond,
	}
}

// Name implements plugin.Plugin.
func (p *Plugin) Name() string { return "mc-credential-gcp" }

// Version implements plugin.Plugin.
func (p *Plugin) Version() string { return plugin.BuildVersion() }

// Description implements plugin.Describer.
func (p *Plugin) Description() string {
	return `
It prints access tokens of Google Cloud, from application default credentials:
the file that GOOGLE_APPLICATION_CREDENTIALS names, the file that gcloud writes,
or the metadata server.

A cluster's profile can choose one of the service accounts that the flags allow
to impersonate, in the extension client.authentication.k8s.io/exec; the provider
must set provideClusterInfo for this:

  {"impersonateServiceAccount": "viewer@p1.iam.gserviceaccount.com"}

A CHAIN is a service account, preceded by its delegates and separated by commas:
each account impersonates the one after it.

Keep profileSourcedCLIArgsPolicy at Ignore, so that no profile can set flags.`
}

// Example implements plugin.Exampler.
func (p *Plugin) Example() string {
	return `
# Print whose token would be requested, without requesting it
KUBERNETES_EXEC_INFO='{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}' \
  mc-credential-gcp --impersonate-service-account=viewer@p1.iam.gserviceaccount.com --explain`
}

// AddFlags implements plugin.Flagger.
func (p *Plugin) AddFlags(flags *flag.FlagSet) {
	flags.Func("scopes", "comma-separated `scopes` of the tokens (default cloud-platform,userinfo.email)", func(text string) error {
		scopes, err := parseScopes(text)
		if err == nil {
			p.Scopes = scopes
		}
		return err
	})
	flags.Func("account", "`email` of the service account whose token the metadata server returns, or that the key must belong to", func(text string) error {
		p.Account = text
		return checkAccount(text)
	})
	flags.Func("impersonate-service-account", "`CHAIN` to impersonate if the profile chooses none", func(text string) (err error) {
		p.Impersonate, err = parseImpersonation(text)
		return err
	})
	flags.Func("allowed-service-account", "`CHAIN` that a profile may choose, by its last account; may be repeated", func(text string) error {
		chain, err := parseImpersonation(text)
		p.AllowedImpersonations = append(p.AllowedImpersonations, chain)
		return err
	})
	flags.StringVar(&p.QuotaProject, "quota-project", p.QuotaProject,
		"`project` that is billed for impersonation requests (default: $GOOGLE_CLOUD_QUOTA_PROJECT, or that of the credentials file)")
	flags.Func("universe-domain", "`domain` of Google's services (default: that of the credentials file, or "+defaultUniverse+")", func(text string) error {
		p.UniverseDomain = text
		return checkDomain(text)
	})
	flags.Func("iam-credentials-url", "`URL` of a private endpoint of the IAM Credentials API", func(text string) error {
		p.IAMCredentialsURL = text
		return checkURL(text)
	})
	p.Cache.AddFlags(flags)
}

// Credential implements plugin.Plugin.
func (p *Plugin) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	chain, err := p.choose(request)
	if err != nil {
		return nil, err
	}
	source, err := p.findSource()
	if err != nil {
		return nil, err
	}
	return p.Cache.Get(ctx, p.cacheKey(source, chain), func(ctx context.Context) (*plugin.Credential, error) {
		token, err := p.obtain(ctx, source, chain)
		if err != nil {
			return nil, err
		}
		return &plugin.Credential{Token: token.AccessToken, Expiry: token.Expiry}, nil
	})
}

// Explain implements plugin.Explainer.
func (p *Plugin) Explain(_ context.Context, request plugin.Request) ([]string, error) {
	chain, err := p.choose(request)
	if err != nil {
		return nil, err
	}
	source, err := p.findSource()
	if err != nil {
		return nil, err
	}
	var steps []string
	if p.Cache.Dir != "" {
		steps = append(steps, "look for a token in "+p.Cache.Dir)
	}
	step := "get an access token from " + source.String()
	if source.path == "" && p.Account != "" {
		step += " for " + p.Account
	}
	steps = append(steps, step)
	if chain.Account != "" {
		step = fmt.Sprintf("impersonate %s at %s", chain.Account, p.iamURL(source))
		if len(chain.Delegates) > 0 {
			step += " via " + strings.Join(chain.Delegates, ", ")
		}
		if project := p.quotaProject(source); project != "" {
			step += ", billed to project " + project
		}
		steps = append(steps, step)
	}
	return append(steps, "scopes are "+strings.Join(p.Scopes, ", ")), nil
}

// cacheKey contains all that distinguishes tokens. The cluster does not.
func (p *Plugin) cacheKey(source *source, chain Impersonation) any {
	return map[string]any{
		"plugin":         p.Name(),
		"source":         source.fingerprint(),
		"account":        p.Account,
		"scopes":         p.Scopes,
		"impersonate":    chain.String(),
		"quotaProject":   p.quotaProject(source),
		"universeDomain": p.UniverseDomain,
		"iam":            p.IAMCredentialsURL,
	}
}

func parseScopes(text string) ([]string, error) {
	var scopes []string
	for scope := range strings.SplitSeq(text, ",") {
		scope = strings.TrimSpace(scope)
		switch {
		case scope == "" || strings.ContainsAny(scope, " \t\n\"\\"):
			return nil, fmt.Errorf("%q is not a scope", scope)
		case scope == "email" || scope == "openid" || strings.Contains(scope, "://"):
			scopes = append(scopes, scope)
		default:
			scopes = append(scopes, "https://www.googleapis.com/auth/"+scope)
		}
	}
	return scopes, nil
}
