// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"cmp"
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

// Plugin is the credential plugin. Its fields are the values of its flags.
type Plugin struct {
	// Kubeconfig is the path of a kubeconfig for the hub. Default: the service
	// account of the pod.
	Kubeconfig string

	// Namespace is the plugin's own namespace, the default for a Secret that a
	// profile names. Default: that of the kubeconfig's context, or of the pod.
	Namespace string

	// AllowedNamespaces are the namespaces whose Secrets a profile may name.
	// Default: only Namespace.
	AllowedNamespaces []string

	// SecretSelector is a label selector that Secrets must match. Default: all
	// Secrets match, but those of type kubernetes.io/service-account-token, which
	// contain a token for the hub itself, are rejected.
	SecretSelector string

	// AnyServer accepts tokens and client certificates of Secrets without
	// AnnotationServer. The author of a profile can then send them to any server
	// that the caller allows. Default: they are rejected.
	AnyServer bool

	// RequestToken makes the plugin print, instead of the credential in the
	// Secret, a short-lived token that it requests with it from the member
	// cluster.
	RequestToken bool

	// TokenServiceAccount is the service account of the member cluster, as
	// "namespace/name", whose token is requested. Default: the one that the
	// Secret's token belongs to.
	TokenServiceAccount string

	// TokenAudiences are the audiences of the requested token. Default: the
	// member cluster.
	TokenAudiences []string

	// TokenLifetime is the lifetime of the requested token, at least 10 min. The
	// member cluster may choose another one. Default: 1 h.
	TokenLifetime time.Duration
}

var (
	_ plugin.Flagger   = &Plugin{}
	_ plugin.Describer = &Plugin{}
	_ plugin.Exampler  = &Plugin{}
	_ plugin.Explainer = &Plugin{}
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
It prints a credential from a Secret in the hub: a token, a client certificate
(tls.crt and tls.key), or one of these from a kubeconfig. The cluster's profile
names the Secret, in the extension client.authentication.k8s.io/exec:

  {"secretRef": {"namespace": "clusters", "name": "c1", "key": "token"}}

The default of "namespace" is the plugin's own; that of "key" is the first of
token, tls.crt, kubeconfig and value that the Secret has. "context" selects a
context of a kubeconfig, whose cluster must be the profile's. {"clusterName":
"c1"} means the token in Secret c1 of the plugin's own namespace, {"name": "c1"}
with "namespace", "key" and "context" means a kubeconfig.

The annotation ` + AnnotationServer + ` of a Secret names the only server that its
token or client certificate may be sent to; without it, --any-server must be set.
A kubeconfig names its server itself.

The provider must set provideClusterInfo. The environment variable KUBECONFIG
is ignored: only flags select the hub and the Secrets. Keep
profileSourcedCLIArgsPolicy at Ignore, so that no profile can set them.`
}

// Example implements plugin.Exampler.
func (p *Plugin) Example() string {
	return `
# Print which Secret would be read for the cluster, without reading it
KUBERNETES_EXEC_INFO='{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{
  "cluster":{"server":"https://c1.example.com:6443","config":{"secretRef":{"name":"c1"}}},"interactive":false}}' \
  mc-credential-token-secret --kubeconfig=hub.kubeconfig --namespace=clusters --explain`
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
		"label `selector` that a Secret must match (default: none, but Secrets of type "+
			string(corev1.SecretTypeServiceAccountToken)+" are rejected)")
	flags.BoolVar(&p.AnyServer, "any-server", p.AnyServer,
		"accept tokens and client certificates of Secrets without the annotation "+AnnotationServer+
			": the author of a profile can send them to any server that the provider file allows (allowedServers)")
	flags.BoolVar(&p.RequestToken, "request-token", p.RequestToken,
		"use the credential in the Secret only to request a short-lived token from the member cluster")
	flags.StringVar(&p.TokenServiceAccount, "token-service-account", p.TokenServiceAccount,
		"`namespace/name` of the member's service account whose token is requested (default: the one that the Secret's token belongs to)")
	flags.Func("token-audience", "`audience` of the requested token; may be repeated (default: the member cluster)",
		func(audience string) error {
			if audience == "" {
				return errors.New("must not be empty")
			}
			p.TokenAudiences = append(p.TokenAudiences, audience)
			return nil
		})
	flags.DurationVar(&p.TokenLifetime, "token-lifetime", p.TokenLifetime,
		"`duration` of the requested token's validity, at least 10m")
}

// Credential implements plugin.Plugin. Its errors name the Secret and the key,
// but contain none of the data.
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
	ref.Namespace = cmp.Or(ref.Namespace, hub.namespace)
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
	credential, err := read(ref, secret, request.Cluster, !p.AnyServer)
	if err != nil || !p.RequestToken {
		return credential, err
	}
	if credential, err = p.requestToken(ctx, credential, request.Cluster); err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	return credential, nil
}

// Explain implements plugin.Explainer. It sends no request.
func (p *Plugin) Explain(_ context.Context, request plugin.Request) ([]string, error) {
	if _, err := labels.Parse(p.SecretSelector); err != nil {
		return nil, fmt.Errorf("%w: --secret-selector: %w", plugin.ErrUsage, err)
	}
	hub, own, err := hubConfig(p.Kubeconfig)
	if err != nil {
		return nil, err
	}
	own = cmp.Or(p.Namespace, own)
	steps := []string{
		fmt.Sprintf("connect to the hub at %s with %s", hub.Host, cmp.Or(p.Kubeconfig, "the pod's service account")),
		fmt.Sprintf("read Secrets in these namespaces only: %s", strings.Join(p.allowedNamespaces(own), ", ")),
	}
	if p.SecretSelector != "" {
		steps = append(steps, fmt.Sprintf("reject Secrets whose labels do not match %s", p.SecretSelector))
	}
	if !p.AnyServer {
		steps = append(steps, fmt.Sprintf("reject tokens and client certificates of Secrets without the annotation %s", AnnotationServer))
	}
	if request.Cluster == nil {
		return steps, nil
	}
	ref, err := decodeReference(request)
	if err != nil {
		return steps, err
	}
	ref.Namespace = cmp.Or(ref.Namespace, own)
	if err := p.allow(ref, own); err != nil {
		return steps, err
	}
	steps = append(steps, fmt.Sprintf("read %s", ref))
	if !p.RequestToken {
		return append(steps, "print the credential in it"), nil
	}
	return append(steps, fmt.Sprintf("request a token of service account %s for %s from the cluster, and print it",
		cmp.Or(p.TokenServiceAccount, "that the Secret's token belongs to"), p.TokenLifetime)), nil
}

// allow rejects references to namespaces that no flag allows.
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

// allowSecret rejects Secrets that profiles must not use.
func (p *Plugin) allowSecret(ref *reference, secret *corev1.Secret, selector labels.Selector) error {
	switch {
	case !selector.Matches(labels.Set(secret.Labels)):
		return fmt.Errorf("%s: the Secret's labels do not match --secret-selector", ref)
	case p.SecretSelector == "" && secret.Type == corev1.SecretTypeServiceAccountToken:
		return fmt.Errorf("%s: a Secret of type %s has a token for the hub itself, and is read only if --secret-selector matches it",
			ref, corev1.SecretTypeServiceAccountToken)
	}
	return nil
}

// describe explains common errors of the hub.
func describe(ref *reference, err error) error {
	var network net.Error
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: the Secret does not exist", ref)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: the plugin is not allowed to read the Secret: it needs the verb get on secrets in the namespace", ref)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the hub rejects the plugin's own credential", ref)
	case errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("%s: the hub did not respond in time", ref)
	}
	return fmt.Errorf("%s: %w", ref, err)
}
