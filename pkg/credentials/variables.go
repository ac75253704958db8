// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"slices"
	"strings"
)

// dangerousVariables are environment variables with which whoever sets them
// decides what code a plugin runs, whom it trusts, where it sends its requests
// or which credential it reads. The comparison is made in upper case.
var dangerousVariables = []string{
	// The request itself, and where in-cluster configuration points.
	execInfoVariable, "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_MASTER",
	// Where programs, configuration and temporary files are found.
	"PATH", "PATHEXT", "COMSPEC", "SYSTEMROOT", "WINDIR", "HOME", "HOMEDRIVE", "HOMEPATH", "USERPROFILE",
	"APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PWD", "TMPDIR", "TMP", "TEMP", "SHELL", "EDITOR", "PAGER", "BROWSER",
	// Shells.
	"IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "ZDOTDIR",
	// C library.
	"GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RESOLV_HOST_CONF", "LOCALDOMAIN", "RES_OPTIONS",
	// Language run times.
	"GODEBUG", "GOCOVERDIR", "CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
	"RUBYLIB", "RUBYOPT", "PERLLIB", "PERL5DB", "PERL5LIB", "PERL5OPT",
	// Proxies and trust.
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY", "REQUEST_METHOD",
	"SSLKEYLOGFILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CURL_HOME",
	// Cloud identities.
	"GOOGLE_APPLICATION_CREDENTIALS", "BOTO_CONFIG", "BOTO_PATH",
}

// dangerousPrefixes are the same for families of variables.
var dangerousPrefixes = []string{
	"LD_", "DYLD_", "MALLOC_", "BASH_FUNC_", "PYTHON", "NODE_", "NPM_", "DOTNET_", "COR_", "CORECLR_",
	"SSL_CERT_", "OPENSSL_", "GIT_", "SSH_", "GNUPG", "XDG_", "KRB5",
	"GOOGLE_", "GCE_METADATA_", "CLOUDSDK_", "GCLOUD_", "AWS_", "AZURE_", "MSI_", "IDENTITY_", "AAD_", "OCI_", "ALIBABA_",
}

// isDangerousVariable tells whether a variable is refused from a profile,
// whatever the policy.
func isDangerousVariable(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(dangerousVariables, name) ||
		slices.ContainsFunc(dangerousPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// isVariableName tells whether the name is made of letters, digits and
// underscores and does not begin with a digit.
func isVariableName(name string) bool {
	for i, r := range name {
		switch {
		case r == '_', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
		case '0' <= r && r <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != ""
}
