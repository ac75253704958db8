// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// Keys of a Secret's data.
const (
	tokenKey       = corev1.ServiceAccountTokenKey
	certificateKey = corev1.TLSCertKey
	kubeconfigKey  = "kubeconfig"

	// clusterAPIKey is the key of Cluster API's kubeconfig Secrets.
	clusterAPIKey = "value"
)

// read returns the credential that the reference selects. Neither its errors nor
// those of the functions it calls contain any of the data. Unlike a kubeconfig,
// other content need not name its server, unless requireServer is set.
func read(ref *reference, secret *corev1.Secret, cluster *plugin.Cluster, requireServer bool) (*plugin.Credential, error) {
	if ref.Key == "" {
		keys := []string{tokenKey, certificateKey, kubeconfigKey, clusterAPIKey}
		if ref.kubeconfig {
			keys = []string{kubeconfigKey, clusterAPIKey}
		}
		i := slices.IndexFunc(keys, func(key string) bool { _, found := secret.Data[key]; return found })
		if i < 0 {
			return nil, fmt.Errorf("%s: the Secret has none of the keys %s", ref, strings.Join(keys, ", "))
		}
		ref.Key = keys[i]
	}
	data, found := secret.Data[ref.Key]
	if !found {
		return nil, fmt.Errorf("%s: the Secret has no such key", ref)
	}
	data = bytes.TrimSpace(data)

	var credential *plugin.Credential
	var err error
	unbound := checkBinding(secret, cluster, requireServer)
	switch {
	case len(data) == 0:
		err = errors.New("the key is empty")
	case ref.kubeconfig || isKubeconfig(data):
		credential, err = fromKubeconfig(data, ref.Context, cluster)
	case unbound != nil:
		err = unbound
	case ref.Context != "":
		err = errors.New("the profile names a context, but the content is not a kubeconfig")
	case bytes.HasPrefix(data, []byte("-----BEGIN CERTIFICATE-----")):
		credential, err = fromCertificate(data, secret.Data[privateKeyKey(ref.Key)])
	default:
		credential, err = fromToken(string(data))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	if !credential.Expiry.IsZero() && !time.Now().Before(credential.Expiry) {
		return nil, fmt.Errorf("%s: the %s expired at %s", ref, kind(credential), credential.Expiry.UTC().Format(time.RFC3339))
	}
	return credential, nil
}

func kind(credential *plugin.Credential) string {
	if credential.Token != "" {
		return "token"
	}
	return "client certificate"
}

// fromToken returns a token, with its expiry if it is a JWT.
func fromToken(token string) (*plugin.Credential, error) {
	// Other content, such as a private key, must not be sent to a server.
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`{}"<>`, r) }) {
		return nil, errors.New("neither a token, nor a client certificate, nor a kubeconfig")
	}
	expiry, _ := plugin.JWTExpiry(token)
	return &plugin.Credential{Token: token, Expiry: expiry}, nil
}

// privateKeyKey returns the key of the private key for the key of a certificate:
// "tls.key" for "tls.crt".
func privateKeyKey(certificateKey string) string {
	return strings.TrimSuffix(certificateKey, ".crt") + ".key"
}

func fromCertificate(certificate, key []byte) (*plugin.Credential, error) {
	if len(key) == 0 {
		return nil, errors.New("the Secret has no private key for the client certificate, under the same name with .key")
	}
	certificate, key = bytes.TrimSpace(certificate), bytes.TrimSpace(key)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("the client certificate and its private key do not match, or are not in PEM form")
	}
	return &plugin.Credential{ClientCertificate: certificate, ClientKey: key, Expiry: pair.Leaf.NotAfter}, nil
}
