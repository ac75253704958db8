// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

var _ plugin.Explainer = &Plugin{}

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
	if p.RequireServer {
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
