// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"
)

// dangerousVariables are environment variables that decide what code a plugin
// runs, which servers it trusts, where it sends its requests or which credential
// it reads. They are compared in upper case.
var dangerousVariables = []string{
	// The request itself, and where in-cluster configuration points.
	ExecInfoVariable, "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_MASTER",
	// Where programs, configuration and temporary files are found.
	"PATH", "PATHEXT", "COMSPEC", "SYSTEMROOT", "WINDIR", "HOME", "HOMEDRIVE", "HOMEPATH", "USERPROFILE",
	"APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PWD", "TMPDIR", "TMP", "TEMP", "SHELL", "EDITOR", "PAGER", "BROWSER",
	// Shells.
	"IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "ZDOTDIR",
	// C library.
	"GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RESOLV_HOST_CONF", "LOCALDOMAIN", "RES_OPTIONS",
	// Language run times.
	"GODEBUG", "GOCOVERDIR", "CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
	"PERLLIB",
	// Proxies and trust.
	"REQUEST_METHOD", "SSLKEYLOGFILE", "CURL_HOME", "WGETRC", "NETRC",
	// Cloud identities.
	"BOTO_CONFIG", "BOTO_PATH",
}

// dangerousPrefixes are the same for families of variables.
var dangerousPrefixes = []string{
	"LD_", "DYLD_", "MALLOC_", "BASH_FUNC_", "PYTHON", "NODE_", "NPM_", "DOTNET_", "COR_", "CORECLR_",
	"PERL5", "RUBY", "GEM_", "BUNDLE_", "LUA_", "PHP", "KUBERNETES_",
	"SSL_CERT_", "NIX_SSL_", "OPENSSL_", "GRPC_", "GIT_", "SSH_", "GNUPG", "XDG_", "KRB5", "VAULT_", "OS_",
	"GOOGLE_", "GCE_METADATA_", "CLOUDSDK_", "GCLOUD_", "AWS_", "AZURE_", "MSI_", "IDENTITY_", "AAD_", "OCI_", "ALIBABA_",
}

// dangerousSuffixes are those of proxies, certificate authorities and credential
// files, for which many programs have variables of their own.
var dangerousSuffixes = []string{
	"_PROXY", "_CA_BUNDLE", "_CA_FILE", "_CA_CERT", "_CACERT", "_CREDENTIALS", "_CREDENTIALS_FILE", "_TOKEN_FILE", "_KEY_FILE",
}

// IsDangerousVariable reports whether a profile may never set the variable,
// whatever the policy.
func IsDangerousVariable(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(dangerousVariables, name) ||
		slices.ContainsFunc(dangerousPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
		slices.ContainsFunc(dangerousSuffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// IsVariableName reports whether the name consists of letters, digits and
// underscores and does not begin with a digit.
func IsVariableName(name string) bool {
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
