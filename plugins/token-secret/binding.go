// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

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
		return errors.New("the Secret has no annotation " + AnnotationServer + ", see --require-server")
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
