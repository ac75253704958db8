// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// Plugin is the credential plugin. Its fields are the flags.
type Plugin struct {
	// Kubeconfig is the path of a kubeconfig for the hub. Where it is empty,
	// the service account of the pod is used.
	Kubeconfig string

	// Namespace is the namespace of a Secret that the profile gives without
	// one. Default: that of the kubeconfig's context, or of the pod.
	Namespace string

	// AllowedNamespaces are the namespaces whose Secrets a profile may name.
	// Default: Namespace alone.
	AllowedNamespaces []string

	// SecretSelector is a label selector which Secrets must match. With it,
	// Secrets with a token for the hub itself (those of type
	// kubernetes.io/service-account-token) may be read too. Default: any other
	// Secret.
	SecretSelector string

	// RequireServer says that a token or a client certificate is read only from
	// a Secret with AnnotationServer, so that whoever writes a profile cannot
	// have it sent to a server of their own. Default: from any Secret.
	RequireServer bool

	// RequestToken says that what the Secret holds is not handed out, but used
	// to have the member cluster issue a token that lives for a short time.
	RequestToken bool

	// TokenServiceAccount is the service account of the member cluster, as
	// "namespace/name", whose token is requested. Default: the one that the
	// Secret's token is of.
	TokenServiceAccount string

	// TokenAudiences are for whom the token is. Default: the member cluster.
	TokenAudiences []string

	// TokenLifetime is how long the token is to be valid, at least 10 min. The
	// member cluster may decide otherwise. Default: 1 h.
	TokenLifetime time.Duration
}

var (
	_ plugin.Flagger   = &Plugin{}
	_ plugin.Describer = &Plugin{}
)

// New returns the plugin with its defaults.
func New() *Plugin { return &Plugin{TokenLifetime: defaultTokenLifetime} }

// Name implements plugin.Plugin.
func (p *Plugin) Name() string { return "mc-credential-token-secret" }

// Version implements plugin.Plugin.
func (p *Plugin) Version() string { return plugin.BuildVersion() }

// Description implements plugin.Describer.
func (p *Plugin) Description() string {
	return `
It reads a credential from a Secret in the hub: a token, a client certificate
(tls.crt and tls.key), or a kubeconfig with either of them inline. The cluster's
profile names the Secret, in the extension client.authentication.k8s.io/exec:

  {"secretRef": {"namespace": "clusters", "name": "c1", "key": "token"}}

"namespace" is the plugin's own where it is left out; "key" is then the first of
token, tls.crt, kubeconfig and value that the Secret has. "context" chooses one
of a kubeconfig, whose cluster must be the profile's. {"clusterName": "c1"} means
the token in Secret c1 of the plugin's own namespace, {"name": "c1"} with
"namespace", "key" and "context" a kubeconfig.

The provider must set provideClusterInfo. The environment variable KUBECONFIG
is not read: which hub and which Secrets are read is said by flags alone. Keep
profileSourcedCLIArgsPolicy at Ignore, so that no profile can set them.`
}

// AddFlags implements plugin.Flagger.
func (p *Plugin) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&p.Kubeconfig, "kubeconfig", p.Kubeconfig,
		"`path` of a kubeconfig for the hub (default: the service account of the pod)")
	flags.StringVar(&p.Namespace, "namespace", p.Namespace,
		"the plugin's own `namespace` in the hub (default: that of the kubeconfig's context, or of the pod)")
	flags.Func("allowed-namespace",
		"`namespace` whose Secrets a profile may name; may be repeated (default: the plugin's own)",
		func(namespace string) error {
			if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
				return errors.New(strings.Join(problems, ", "))
			}
			p.AllowedNamespaces = append(p.AllowedNamespaces, namespace)
			return nil
		})
	flags.StringVar(&p.SecretSelector, "secret-selector", p.SecretSelector,
		"label `selector` which a Secret must match (default: none, but Secrets of type "+
			string(corev1.SecretTypeServiceAccountToken)+" are refused)")
	flags.BoolVar(&p.RequireServer, "require-server", p.RequireServer,
		"read tokens and client certificates only from Secrets whose annotation "+AnnotationServer+" is the profile's server")
	flags.BoolVar(&p.RequestToken, "request-token", p.RequestToken,
		"use what is in the Secret only to request a short-lived token from the member cluster")
	flags.StringVar(&p.TokenServiceAccount, "token-service-account", p.TokenServiceAccount,
		"`namespace/name` of the member's service account whose token is requested (default: the one that the Secret's token is of)")
	flags.Func("token-audience", "`audience` of the requested token; may be repeated (default: the member cluster)",
		func(audience string) error {
			if audience == "" {
				return errors.New("must not be empty")
			}
			p.TokenAudiences = append(p.TokenAudiences, audience)
			return nil
		})
	flags.DurationVar(&p.TokenLifetime, "token-lifetime", p.TokenLifetime,
		"`duration` for which the requested token is valid, at least 10m")
}

// Credential implements plugin.Plugin. Its errors name the Secret and the key,
// never what is in them.
func (p *Plugin) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	selector, err := labels.Parse(p.SecretSelector)
	if err != nil {
		return nil, fmt.Errorf("%w: --secret-selector: %w", plugin.ErrUsage, err)
	}
	if p.TokenLifetime < minTokenLifetime {
		return nil, fmt.Errorf("%w: --token-lifetime: must be at least %s", plugin.ErrUsage, minTokenLifetime)
	}
	ref, err := decodeReference(request)
	if err != nil {
		return nil, err
	}
	hub, err := connectHub(p)
	if err != nil {
		return nil, err
	}
	if ref.Namespace == "" {
		ref.Namespace = hub.namespace
	}
	if err := p.allow(ref, hub.namespace); err != nil {
		return nil, err
	}
	secret, err := hub.secret(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, describe(ref, err)
	}
	if err := p.allowSecret(ref, secret, selector); err != nil {
		return nil, err
	}
	credential, err := read(ref, secret, request.Cluster, p.RequireServer)
	if err != nil || !p.RequestToken {
		return credential, err
	}
	if credential, err = p.requestToken(ctx, credential, request.Cluster); err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	return credential, nil
}

// allow refuses references to namespaces that no flag names.
func (p *Plugin) allow(ref *reference, own string) error {
	if !slices.Contains(p.allowedNamespaces(own), ref.Namespace) {
		return fmt.Errorf("%s: namespace %q is not allowed, see --allowed-namespace", ref, ref.Namespace)
	}
	return nil
}

func (p *Plugin) allowedNamespaces(own string) []string {
	if len(p.AllowedNamespaces) > 0 {
		return p.AllowedNamespaces
	}
	return []string{own}
}

// allowSecret refuses Secrets that are not meant for profiles.
func (p *Plugin) allowSecret(ref *reference, secret *corev1.Secret, selector labels.Selector) error {
	switch {
	case !selector.Matches(labels.Set(secret.Labels)):
		return fmt.Errorf("%s: the Secret's labels do not match --secret-selector", ref)
	case p.SecretSelector == "" && secret.Type == corev1.SecretTypeServiceAccountToken:
		return fmt.Errorf("%s: a Secret of type %s has a token for the hub itself and is read only where --secret-selector matches it",
			ref, corev1.SecretTypeServiceAccountToken)
	}
	return nil
}

// describe puts common refusals of the hub into words.
func describe(ref *reference, err error) error {
	var network net.Error
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: the Secret does not exist", ref)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: the plugin may not read the Secret: it needs the verb get on secrets in the namespace", ref)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the hub does not accept the plugin's own credential", ref)
	case errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("%s: the hub did not answer in time", ref)
	}
	return fmt.Errorf("%s: %w", ref, err)
}
