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

// AnnotationServer is the annotation of a Secret with the only server that its
// credential may be sent to, such as "https://c1.example.com:6443". If the Secret
// has the key ca.crt, the profile must have the same certificate authority. A
// kubeconfig contains both itself.
const AnnotationServer = "rollcall.dev/server"

// checkBinding rejects a profile that would send a token or client certificate
// to another server than that of its Secret.
func checkBinding(secret *corev1.Secret, cluster *plugin.Cluster, required bool) error {
	server, bound := secret.Annotations[AnnotationServer]
	switch {
	case !bound && required:
		return errors.New("the Secret has no annotation " + AnnotationServer + ", see --any-server")
	case !bound:
		return nil
	case address(server) == "":
		return errors.New("the Secret's annotation " + AnnotationServer + " is not the https URL of a server")
	case !sameServer(server, cluster.Server):
		return errors.New("the Secret is for another server than the profile's, see its annotation " + AnnotationServer)
	}
	ca := secret.Data[corev1.ServiceAccountRootCAKey]
	switch {
	case cluster.TLSServerName != "":
		return errors.New("the profile has a tls-server-name, which a Secret with the annotation " + AnnotationServer + " does not allow")
	case cluster.InsecureSkipTLSVerify:
		return errors.New("the profile does not verify the server's certificate, which a Secret with the annotation " + AnnotationServer + " requires")
	case len(ca) > 0 && (len(certificates(ca)) == 0 || !sameCertificates(ca, cluster.CAData)):
		return errors.New("the Secret's " + corev1.ServiceAccountRootCAKey + " is not the profile's certificate authority")
	case len(ca) == 0 && cluster.ProxyURL != "": // the proxy could be any server
		return errors.New("the profile has a proxy-url, which a Secret with the annotation " + AnnotationServer +
			" allows only if it has the certificate authority under " + corev1.ServiceAccountRootCAKey)
	}
	return nil
}
