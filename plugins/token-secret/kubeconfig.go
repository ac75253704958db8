// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"bytes"
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

// isKubeconfig tells whether the data, which may be anything, is meant to be a
// kubeconfig.
func isKubeconfig(data []byte) bool {
	if !bytes.ContainsAny(data, "{:") {
		return false
	}
	config, err := clientcmd.Load(data)
	return err == nil && (len(config.Clusters) > 0 || len(config.AuthInfos) > 0 || len(config.Contexts) > 0)
}

// fromKubeconfig returns the credential that the context has for the cluster. A
// kubeconfig is data here: nothing in it is run, and no file that it names is
// read.
func fromKubeconfig(data []byte, contextName string, cluster *plugin.Cluster) (*plugin.Credential, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, errors.New("not a kubeconfig") // the error could show the data
	}
	if contextName == "" {
		contextName = config.CurrentContext
	}
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
	if err := checkCluster(target, cluster); err != nil {
		return nil, fmt.Errorf("context %q of the kubeconfig: %w", contextName, err)
	}
	credential, err := fromUser(user)
	if err != nil {
		return nil, fmt.Errorf("context %q of the kubeconfig: %w", contextName, err)
	}
	return credential, nil
}

// checkCluster refuses a profile that would have the credential sent elsewhere
// than the kubeconfig says. The address alone would not do: by a proxy and
// certificates of their own, the author of a profile could be that server.
func checkCluster(target *clientcmdapi.Cluster, cluster *plugin.Cluster) error {
	switch {
	case !sameServer(target.Server, cluster.Server):
		return errors.New("its server is not the profile's server")
	case target.InsecureSkipTLSVerify && cluster.ProxyURL != "" && cluster.ProxyURL != target.ProxyURL:
		return errors.New("it does not verify the server's certificate, and the profile has a proxy that it has not")
	case target.InsecureSkipTLSVerify:
		return nil // whatever the profile verifies is more
	case cluster.InsecureSkipTLSVerify:
		return errors.New("the profile does not verify the server's certificate, as the kubeconfig does")
	case target.CertificateAuthority != "" && len(target.CertificateAuthorityData) == 0:
		return errors.New("certificate-authority is a path, which means nothing in a Secret: use certificate-authority-data")
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

// address brings a server's URL into one form, "" for one that is not https.
func address(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port) + strings.TrimRight(u.EscapedPath(), "/")
}

// sameCertificates compares without regard to order and what is between them.
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

// fromUser takes a user's token, or else certificate.
func fromUser(user *clientcmdapi.AuthInfo) (*plugin.Credential, error) {
	switch {
	case user.Exec != nil:
		return nil, errors.New("its user runs a program (exec), which data from a Secret must not do: use a token or a client certificate")
	case user.AuthProvider != nil:
		return nil, errors.New("its user has an auth-provider, which needs a program's help: use a token or a client certificate")
	case user.Impersonate != "" || user.ImpersonateUID != "" || len(user.ImpersonateGroups) > 0 || len(user.ImpersonateUserExtra) > 0:
		return nil, errors.New("its user impersonates another, which a credential cannot say")
	case user.Username != "" || user.Password != "":
		return nil, errors.New("its user has a password, which API servers do not take: use a token or a client certificate")
	case user.Token != "":
		return fromToken(strings.TrimSpace(user.Token))
	case len(user.ClientCertificateData) > 0:
		return fromCertificate(user.ClientCertificateData, user.ClientKeyData)
	case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "":
		return nil, errors.New("its user's credential is a path, which means nothing in a Secret: have it inline")
	}
	return nil, errors.New("its user has neither a token nor a client certificate")
}
