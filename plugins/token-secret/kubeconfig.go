// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"bytes"
	"cmp"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// isKubeconfig reports whether the data is a kubeconfig.
func isKubeconfig(data []byte) bool {
	if !bytes.ContainsAny(data, "{:") {
		return false
	}
	config, err := clientcmd.Load(data)
	return err == nil && (len(config.Clusters) > 0 || len(config.AuthInfos) > 0 || len(config.Contexts) > 0)
}

// fromKubeconfig returns the context's credential for the cluster. It runs no
// command and reads no file that the kubeconfig names.
func fromKubeconfig(data []byte, contextName string, cluster *plugin.Cluster) (*plugin.Credential, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, errors.New("not a kubeconfig") // the error could show the data
	}
	contextName = cmp.Or(contextName, config.CurrentContext)
	chosen := config.Contexts[contextName]
	switch {
	case contextName == "":
		return nil, errors.New("the kubeconfig has no current context, and the profile names none")
	case chosen == nil:
		return nil, fmt.Errorf("the kubeconfig has no context %q", contextName)
	}
	target, user := config.Clusters[chosen.Cluster], config.AuthInfos[chosen.AuthInfo]
	switch {
	case target == nil:
		return nil, fmt.Errorf("context %q of the kubeconfig has no cluster", contextName)
	case user == nil:
		return nil, fmt.Errorf("context %q of the kubeconfig has no user", contextName)
	}
	var credential *plugin.Credential
	if err = checkCluster(target, cluster); err == nil {
		credential, err = fromUser(user)
	}
	if err != nil {
		return nil, fmt.Errorf("context %q of the kubeconfig: %w", contextName, err)
	}
	return credential, nil
}

// checkCluster rejects a profile that would send the credential to another server
// than that of the kubeconfig. Comparing addresses is not enough: with a proxy
// and a certificate authority, the author of a profile could impersonate the
// server.
func checkCluster(target *clientcmdapi.Cluster, cluster *plugin.Cluster) error {
	switch {
	case !sameServer(target.Server, cluster.Server):
		return errors.New("its server is not the profile's server")
	case target.InsecureSkipTLSVerify && cluster.ProxyURL != "" && cluster.ProxyURL != target.ProxyURL:
		return errors.New("it does not verify the server's certificate, and the profile has another proxy")
	case target.InsecureSkipTLSVerify:
		return nil // the profile verifies at least as much
	case cluster.InsecureSkipTLSVerify:
		return errors.New("the profile does not verify the server's certificate, but the kubeconfig does")
	case target.CertificateAuthority != "" && len(target.CertificateAuthorityData) == 0:
		return errors.New("certificate-authority is a path, which is invalid in a Secret: use certificate-authority-data")
	case !sameCertificates(target.CertificateAuthorityData, cluster.CAData):
		return errors.New("its certificate authority is not the profile's")
	case target.TLSServerName != cluster.TLSServerName:
		return errors.New("its tls-server-name is not the profile's")
	}
	return nil
}

func sameServer(one, other string) bool {
	a, b := address(one), address(other)
	return a == b && a != ""
}

// address normalizes a server's URL. It returns "" if it is not an https URL.
func address(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return ""
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), "443")) + strings.TrimRight(u.EscapedPath(), "/")
}

// sameCertificates ignores the order and any text between certificates.
func sameCertificates(one, other []byte) bool {
	return slices.Equal(certificates(one), certificates(other))
}

func certificates(data []byte) []string {
	var list []string
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			slices.Sort(list)
			return slices.Compact(list)
		}
		list = append(list, string(block.Bytes))
	}
}

// fromUser returns the user's token, or else its certificate.
func fromUser(user *clientcmdapi.AuthInfo) (*plugin.Credential, error) {
	switch {
	case user.Exec != nil:
		return nil, errors.New("its user runs a program (exec), which is not allowed in a Secret: use a token or a client certificate")
	case user.AuthProvider != nil:
		return nil, errors.New("its user has an auth-provider, which is not supported: use a token or a client certificate")
	case user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0:
		return nil, errors.New("its user impersonates another user, which a credential cannot express")
	case user.Username != "" || user.Password != "":
		return nil, errors.New("its user has a password, which API servers do not accept: use a token or a client certificate")
	case user.Token != "":
		return fromToken(strings.TrimSpace(user.Token))
	case len(user.ClientCertificateData) > 0:
		return fromCertificate(user.ClientCertificateData, user.ClientKeyData)
	case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "":
		return nil, errors.New("its user's credential is a path, which is invalid in a Secret: use inline data")
	}
	return nil, errors.New("its user has neither a token nor a client certificate")
}
