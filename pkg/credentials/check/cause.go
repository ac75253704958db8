// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"unicode"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/redact"
)

// Cause is why a step failed.
type Cause string

// Causes of the steps Provider, Plugin and Credential. Each is the error of the same
// name in package credentials.
const (
	NoProvider     Cause = "NoProvider"
	InvalidProfile Cause = "InvalidProfile"
	Denied         Cause = "Denied"
	NoAccess       Cause = "NoAccess" // any other error of the Method
	PluginMissing  Cause = "PluginMissing"
	PluginFailed   Cause = "PluginFailed"
	PluginTimeout  Cause = "PluginTimeout"
	InvalidOutput  Cause = "InvalidOutput"
	Expired        Cause = "Expired"
	NoCredential   Cause = "NoCredential" // any other error
)

// Causes of the steps Server and TLS.
const (
	HostNotFound           Cause = "HostNotFound"
	ConnectionRefused      Cause = "ConnectionRefused"
	ConnectionTimeout      Cause = "ConnectionTimeout"
	ConnectionFailed       Cause = "ConnectionFailed"
	ProxyFailed            Cause = "ProxyFailed"
	NoResponse             Cause = "NoResponse"
	ServerError            Cause = "ServerError"
	UnknownAuthority       Cause = "UnknownAuthority"
	CertificateExpired     Cause = "CertificateExpired"
	CertificateNotYetValid Cause = "CertificateNotYetValid"
	WrongServerName        Cause = "WrongServerName"
	CertificateInvalid     Cause = "CertificateInvalid"
	NotTLS                 Cause = "NotTLS"
	TLSFailed              Cause = "TLSFailed"
)

// Causes of the steps Identity and Permissions.
const (
	Unauthorized       Cause = "Unauthorized"
	Anonymous          Cause = "Anonymous"
	NotKubernetes      Cause = "NotKubernetes"
	ReviewFailed       Cause = "ReviewFailed"
	PermissionsMissing Cause = "PermissionsMissing"
	Canceled           Cause = "Canceled"
)

var remedies = map[Cause]string{
	NoProvider:             "add an entry to the provider file for an access provider of the profile, or correct the name in one of the two",
	InvalidProfile:         "correct the access provider in the status of the profile, in its cluster manager",
	Denied:                 "allow it in the entry of the provider file if it is wanted, or correct the profile",
	NoAccess:               "correct what the message names",
	PluginMissing:          "install the plugin in a plugin folder, or correct the command in the provider file",
	PluginFailed:           "read the error of the plugin; run it with the arguments and the environment that explain shows",
	PluginTimeout:          "find out what the plugin waits for, or allow it more time",
	InvalidOutput:          "correct the plugin, or use a version that prints an ExecCredential",
	Expired:                "compare the clocks of the machines, and clear caches of the plugin",
	NoCredential:           "correct what the message names",
	HostNotFound:           "correct the server in the profile, or the DNS of this machine",
	ConnectionRefused:      "check that the API server runs, and its port",
	ConnectionTimeout:      "check routes and firewalls from this machine to the server, or set proxy-url",
	ConnectionFailed:       "check the network from this machine to the server",
	ProxyFailed:            "check the proxy: proxy-url of the profile, or HTTPS_PROXY and NO_PROXY of this machine",
	NoResponse:             "check the API server, or the load balancer before it: it accepts connections, and does not respond",
	ServerError:            "check the API server, or the load balancer before it",
	UnknownAuthority:       "set certificate-authority-data of the profile to the authority that issued the server's certificate",
	CertificateExpired:     "renew the certificate of the server",
	CertificateNotYetValid: "compare the clocks of the two machines",
	WrongServerName:        "use a server name that is in the certificate, or set tls-server-name of the profile to one",
	CertificateInvalid:     "replace the certificate of the server",
	NotTLS:                 "correct the port or the scheme of the server: what responds there does not use TLS",
	TLSFailed:              "check the TLS settings of the server, and what terminates TLS before it",
	Unauthorized:           "check that the credential is for this cluster, and that the cluster trusts its issuer",
	Anonymous:              "check that the cluster accepts this kind of credential: the request had one, and was taken for an anonymous one",
	NotKubernetes:          "correct the server in the profile: what responds is not a Kubernetes API server",
	ReviewFailed:           "check the API server: it does not answer reviews",
	PermissionsMissing:     "bind a role with the missing rules to the user in the cluster",
	Canceled:               "run the check again",
}

// Remedy returns what to do in most cases.
func (c Cause) Remedy() string { return remedies[c] }

// maxMessage limits a message, in bytes.
const maxMessage = 2 << 10

// printable returns the message as one line without secrets: servers and plugins
// choose parts of it.
func printable(message string) string {
	text := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(message, "?"), func(r rune) bool {
		return r == ' ' || !unicode.IsPrint(r)
	}), " ")
	text = redact.Text(text)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + " …"
	}
	return text
}
