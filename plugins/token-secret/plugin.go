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
}

var (
	_ plugin.Flagger   = &Plugin{}
	_ plugin.Describer = &Plugin{}
)

// New returns the plugin with its defaults.
func New() *Plugin { return &Plugin{} }

// Name implements plugin.Plugin.
func (p *Plugin) Name() string { return "mc-credential-token-secret" }

// Version implements plugin.Plugin.
func (p *Plugin) Version() string { return plugin.BuildVersion() }

// Description implements plugin.Describer.
func (p *Plugin) Description() string {
	return `
It reads a bearer token from a Secret in the hub. The cluster's profile names
the Secret, in the extension client.authentication.k8s.io/exec:

  {"secretRef": {"namespace": "clusters", "name": "c1", "key": "token"}}

"key" is "token" where it is left out, "namespace" the plugin's own.
{"clusterName": "c1"} means the Secret c1 in the plugin's own namespace.

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
}

// Credential implements plugin.Plugin. Its errors name the Secret and the key,
// never what is in them.
func (p *Plugin) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	selector, err := labels.Parse(p.SecretSelector)
	if err != nil {
		return nil, fmt.Errorf("--secret-selector: %w", err)
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
	return tokenFrom(ref, secret)
}

// allow refuses references to namespaces that no flag names.
func (p *Plugin) allow(ref *reference, own string) error {
	allowed := p.AllowedNamespaces
	if len(allowed) == 0 {
		allowed = []string{own}
	}
	if !slices.Contains(allowed, ref.Namespace) {
		return fmt.Errorf("%s: namespace %q is not allowed, see --allowed-namespace", ref, ref.Namespace)
	}
	return nil
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

func tokenFrom(ref *reference, secret *corev1.Secret) (*plugin.Credential, error) {
	data, found := secret.Data[ref.Key]
	token := strings.TrimSpace(string(data))
	switch {
	case !found:
		return nil, fmt.Errorf("%s: the Secret has no such key", ref)
	case token == "":
		return nil, fmt.Errorf("%s: the key is empty", ref)
	}
	credential := &plugin.Credential{Token: token}
	if expiry, ok := plugin.JWTExpiry(token); ok {
		if !time.Now().Before(expiry) {
			return nil, fmt.Errorf("%s: the token expired at %s", ref, expiry.UTC().Format(time.RFC3339))
		}
		credential.Expiry = expiry
	}
	return credential, nil
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
