// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	defaultTokenLifetime = time.Hour

	// minTokenLifetime is the minimum that API servers accept.
	minTokenLifetime = 10 * time.Minute
)

// serviceAccount is a service account of the member cluster.
type serviceAccount struct {
	namespace, name string
}

// String returns the format of --token-service-account.
func (a serviceAccount) String() string { return a.namespace + "/" + a.name }

func parseServiceAccount(text string) (serviceAccount, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return serviceAccount{}, fmt.Errorf("%q is not namespace/name of a service account", text)
	}
	return serviceAccount{namespace, name}, nil
}

// ownerOf returns the service account in the token's claim "sub". The signature
// is not verified: the member cluster does that.
func ownerOf(token string) (serviceAccount, error) {
	var claims struct {
		Subject string `json:"sub"`
	}
	if parts := strings.Split(token, "."); len(parts) == 3 {
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil || json.Unmarshal(payload, &claims) != nil {
			claims.Subject = ""
		}
	}
	subject, found := strings.CutPrefix(claims.Subject, "system:serviceaccount:")
	owner, err := parseServiceAccount(strings.Replace(subject, ":", "/", 1))
	if !found || err != nil {
		return serviceAccount{}, errors.New("the token does not name its service account, see --token-service-account")
	}
	return owner, nil
}

// requestToken requests a token from the member cluster, authenticated by the
// parent.
func (p *Plugin) requestToken(ctx context.Context, parent *plugin.Credential, cluster *plugin.Cluster) (*plugin.Credential, error) {
	var account serviceAccount
	var err error
	if p.TokenServiceAccount != "" {
		if account, err = parseServiceAccount(p.TokenServiceAccount); err != nil {
			err = fmt.Errorf("%w: --token-service-account: %w", plugin.ErrUsage, err)
		}
	} else {
		account, err = ownerOf(parent.Token)
	}
	if err != nil {
		return nil, err
	}
	config, err := memberConfig(parent, cluster)
	if err != nil {
		return nil, err
	}
	client, err := p.restClient(config)
	if err != nil {
		return nil, fmt.Errorf("member cluster: %w", err)
	}

	seconds := int64(p.TokenLifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:         p.TokenAudiences,
		ExpirationSeconds: &seconds,
	}}
	err = client.Post().
		Namespace(account.namespace).
		Resource("serviceaccounts").
		Name(account.name).
		SubResource("token").
		VersionedParams(&metav1.CreateOptions{}, metav1.ParameterCodec).
		Body(request).
		Do(ctx).
		Into(request)
	switch {
	case apierrors.IsUnauthorized(err):
		return nil, errors.New("the member cluster rejects the credential")
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("the credential's owner is not allowed to request tokens in the member cluster: it needs the verb create on serviceaccounts/token for %s", account)
	case err != nil:
		return nil, fmt.Errorf("requesting a token for service account %s in the member cluster: %s", account, without(parent.Token, err))
	case request.Status.Token == "":
		return nil, errors.New("the member cluster issued an empty token")
	}
	return &plugin.Credential{Token: request.Status.Token, Expiry: request.Status.ExpirationTimestamp.Time}, nil
}

// without returns the error's text without the secret, which a server may have
// repeated.
func without(secret string, err error) string {
	if secret == "" {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), secret, "[redacted]")
}

// memberConfig returns the configuration for the cluster of the profile.
func memberConfig(parent *plugin.Credential, cluster *plugin.Cluster) (*rest.Config, error) {
	if address(cluster.Server) == "" {
		return nil, fmt.Errorf("%w: the cluster's server is not an https URL", plugin.ErrBadRequest)
	}
	config := &rest.Config{
		Host:        cluster.Server,
		BearerToken: parent.Token,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName,
			Insecure:   cluster.InsecureSkipTLSVerify,
			CAData:     cluster.CAData,
			CertData:   parent.ClientCertificate,
			KeyData:    parent.ClientKey,
		},
		DisableCompression: cluster.DisableCompression,
	}
	if cluster.ProxyURL != "" {
		proxy, err := url.Parse(cluster.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("%w: the cluster's proxy-url is not a URL", plugin.ErrBadRequest)
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	return config, nil
}

// restClient returns a client for the core group. It makes the program half as
// large as the whole clientset does.
func (p *Plugin) restClient(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = codecs.WithoutConversion()
	config.UserAgent = p.Name() + "/" + p.Version()
	config.Timeout = requestTimeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	// client-go would send the credential to the target of a redirect.
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return errors.New("the server sent a redirect, which is not followed")
	}
	return rest.RESTClientForConfigAndClient(config, client)
}
