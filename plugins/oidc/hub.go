// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	defaultLifetime = time.Hour

	// minLifetime is the minimum that API servers accept.
	minLifetime = 10 * time.Minute

	// requestTimeout limits one request. It is less than the plugin's 25 s.
	requestTimeout = 20 * time.Second
)

// codecs has the types of the requests that the plugin sends.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	utilruntime.Must(authenticationv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
}()

// hub issues tokens of a service account.
type hub struct {
	client  rest.Interface
	account serviceAccount
}

// connectHub sends no request.
func connectHub(p *Plugin) (*hub, error) {
	config, err := hubConfig(p.Kubeconfig)
	if err != nil {
		return nil, err
	}
	account, err := p.serviceAccount(config)
	if err != nil {
		return nil, err
	}
	// A client for the core group makes the program half as large as the whole
	// clientset does.
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = codecs.WithoutConversion()
	config.UserAgent = p.Name() + "/" + p.Version()
	config.Timeout = requestTimeout
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	// client-go would send the credential to the target of a redirect.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error {
		return errors.New("the server sent a redirect, which is not followed")
	}
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	return &hub{client: client, account: account}, nil
}

func hubConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		switch {
		case errors.Is(err, rest.ErrNotInCluster):
			return nil, fmt.Errorf("%w: not in a cluster: --kubeconfig or --token-file must be given", plugin.ErrUsage)
		case err != nil:
			return nil, fmt.Errorf("service account of the pod: %w", err)
		}
		return config, nil
	}
	rules := clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	raw, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}

// serviceAccount returns that of the flag, or else the one that the plugin's own
// token belongs to.
func (p *Plugin) serviceAccount(config *rest.Config) (serviceAccount, error) {
	if p.ServiceAccount != "" {
		account, err := parseServiceAccount(p.ServiceAccount)
		if err != nil {
			return account, fmt.Errorf("%w: --service-account: %w", plugin.ErrUsage, err)
		}
		return account, nil
	}
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		data, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return serviceAccount{}, fmt.Errorf("the plugin's own token: %w", err)
		}
		token = strings.TrimSpace(string(data))
	}
	account, err := ownerOf(token)
	if err != nil {
		return account, fmt.Errorf("%w: --service-account must be given: the plugin's own credential for the hub is %w", plugin.ErrUsage, err)
	}
	return account, nil
}

// fromHub requests a token with the audience.
func (p *Plugin) fromHub(ctx context.Context, audience string) (*plugin.Credential, error) {
	if p.Lifetime < minLifetime {
		return nil, fmt.Errorf("%w: --token-lifetime: must be at least %s", plugin.ErrUsage, minLifetime)
	}
	h, err := connectHub(p)
	if err != nil {
		return nil, err
	}
	own := p.HubAudiences
	if len(own) == 0 {
		if own, err = h.audiences(ctx); err != nil {
			return nil, fmt.Errorf("reading the hub's own audiences, see --hub-audience: %w", err)
		}
	}
	if slices.Contains(own, audience) {
		return nil, errHubAudience(audience)
	}
	response, err := h.request(ctx, p.Lifetime, audience)
	if err != nil {
		return nil, err
	}
	credential, err := check(response.Status.Token, audience)
	if err != nil {
		return nil, fmt.Errorf("token of service account %s in the hub: %w: check the clocks", h.account, err)
	}
	return credential, nil
}

// errHubAudience is the error for a token that the hub itself would accept.
func errHubAudience(audience string) error {
	return fmt.Errorf("audience %q is one of the hub's own API server, which would accept the token, too: "+
		"give the member an audience of its own", audience)
}

// audiences returns those of the hub's API server: it issues a token for them if
// the request names none. That token is not used.
func (h *hub) audiences(ctx context.Context) ([]string, error) {
	response, err := h.request(ctx, minLifetime)
	if err != nil {
		return nil, err
	}
	if len(response.Spec.Audiences) == 0 {
		return nil, errors.New("the hub does not tell them")
	}
	return response.Spec.Audiences, nil
}

// request requests a token. The errors contain no data of the response.
func (h *hub) request(ctx context.Context, lifetime time.Duration, audiences ...string) (*authenticationv1.TokenRequest, error) {
	response := &authenticationv1.TokenRequest{}
	err := h.client.Post().
		Namespace(h.account.namespace).
		Resource("serviceaccounts").
		Name(h.account.name).
		SubResource("token").
		VersionedParams(&metav1.CreateOptions{}, metav1.ParameterCodec).
		Body(&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences:         audiences,
			ExpirationSeconds: ptr.To(int64(lifetime.Seconds())),
		}}).
		Do(ctx).
		Into(response)
	var network net.Error
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("service account %s does not exist in the hub", h.account)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the plugin is not allowed to request tokens of service account %s in the hub: "+
			"it needs the verb create on serviceaccounts/token", h.account)
	case apierrors.IsUnauthorized(err):
		return nil, errors.New("the hub rejects the plugin's own credential")
	case errors.As(err, &network) && network.Timeout():
		return nil, errors.New("the hub did not respond in time")
	case err != nil:
		return nil, fmt.Errorf("requesting a token of service account %s in the hub: %w", h.account, err)
	case response.Status.Token == "":
		return nil, errors.New("the hub issued an empty token")
	}
	return response, nil
}
