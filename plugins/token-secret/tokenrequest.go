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

	// minTokenLifetime is the least that API servers accept.
	minTokenLifetime = 10 * time.Minute
)

// serviceAccount is one of the member cluster.
type serviceAccount struct {
	namespace, name string
}

// String returns what --token-service-account takes.
func (a serviceAccount) String() string { return a.namespace + "/" + a.name }

func parseServiceAccount(text string) (serviceAccount, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return serviceAccount{}, fmt.Errorf("%q is not namespace/name of a service account", text)
	}
	return serviceAccount{namespace, name}, nil
}

// ownerOf returns the service account that a token is of, by its claim "sub".
// The signature is not looked at: the member cluster does so.
func ownerOf(token string) (serviceAccount, error) {
	unknown := errors.New("the token does not say which service account it is of, see --token-service-account")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return serviceAccount{}, unknown
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return serviceAccount{}, unknown
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return serviceAccount{}, unknown
	}
	subject, found := strings.CutPrefix(claims.Subject, "system:serviceaccount:")
	if !found {
		return serviceAccount{}, unknown
	}
	owner, err := parseServiceAccount(strings.Replace(subject, ":", "/", 1))
	if err != nil {
		return serviceAccount{}, unknown
	}
	return owner, nil
}

// requestToken has the member cluster issue a token, with the parent as the
// credential for that.
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
		return nil, errors.New("the member cluster does not accept it as the parent of a token")
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("its owner may not request tokens in the member cluster: it needs the verb create on serviceaccounts/token for %s", account)
	case err != nil:
		return nil, fmt.Errorf("requesting a token for service account %s in the member cluster: %s", account, without(parent.Token, err))
	case request.Status.Token == "":
		return nil, errors.New("the member cluster issued an empty token")
	}
	return &plugin.Credential{Token: request.Status.Token, Expiry: request.Status.ExpirationTimestamp.Time}, nil
}

// without returns the error's text, in which a server may have repeated what it
// was sent.
func without(secret string, err error) string {
	if secret == "" {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), secret, "[redacted]")
}

// memberConfig leads to the cluster as the profile says.
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

// restClient returns one for the core group. With one for one group, a program
// is of half the size of one with the whole clientset.
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
	// client-go would show the credential wherever a redirect leads.
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return errors.New("it redirects, which is not followed")
	}
	return rest.RESTClientForConfigAndClient(config, client)
}
