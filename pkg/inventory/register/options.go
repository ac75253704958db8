// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package register

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// Access is how controllers are to connect to a member.
type Access string

const (
	// AccessAuto is AccessOIDC if the member already trusts the hub, else
	// AccessTokenSecret.
	AccessAuto Access = "auto"

	// AccessOIDC is access with tokens of a ServiceAccount of the hub. It is also the
	// name of the access provider.
	AccessOIDC Access = "oidc"

	// AccessTokenSecret is access with a token in a Secret of the hub. It is also the
	// name of the access provider.
	AccessTokenSecret Access = "token-secret"
)

const (
	// Manager is the cluster manager of registered profiles (KEP-4322), and the field
	// manager of all objects that are written.
	Manager = "mc-credential"

	// DefaultMemberNamespace is the default of Options.MemberNamespace.
	DefaultMemberNamespace = "mc-credential"

	// DefaultTokenLifetime is the default of Options.TokenLifetime.
	DefaultTokenLifetime = 30 * 24 * time.Hour

	// DefaultUsernamePrefix is the default of Options.UsernamePrefix.
	DefaultUsernamePrefix = "hub:"

	// MinTokenLifetime is the minimum that API servers accept.
	MinTokenLifetime = 10 * time.Minute
)

// Errors that Register, Unregister and Rotate wrap.
var (
	// ErrInvalidOptions means that options are missing or wrong. No request was sent.
	ErrInvalidOptions = errors.New("invalid options")

	// ErrNotOwned means that an object exists that this registration did not create.
	ErrNotOwned = errors.New("belongs to someone else")

	// ErrOtherCluster means that the name stands for another cluster, or the cluster
	// is registered under another name.
	ErrOtherCluster = errors.New("another cluster")

	// ErrNotTrusted means that the member does not accept tokens of the hub.
	ErrNotTrusted = errors.New("the member does not trust the hub as an issuer of tokens")

	// ErrNotRegistered means that there is nothing to unregister or rotate.
	ErrNotRegistered = errors.New("not registered")

	// ErrUnreachable means that the member does not respond. Unregister has done
	// nothing then.
	ErrUnreachable = errors.New("the member does not respond")
)

// Options are what Register needs.
type Options struct {
	// Hub is the configuration for the hub. Required.
	Hub *rest.Config

	// Namespace is that of the profile in the hub, the inventory. It must exist.
	// Required.
	Namespace string

	// Name is that of the profile: a DNS-1123 subdomain of at most 63 characters.
	// Required.
	Name string

	// Member is the configuration of an administrator of the member. Its server and
	// certificate authority become those of the profile; its credentials are not
	// stored. Required.
	Member *rest.Config

	// Rules are the permissions of controllers in the member. To get the namespace
	// kube-system, which identifies the cluster, is added. Required.
	Rules []rbacv1.PolicyRule

	// Access defaults to AccessAuto. Without ServiceAccount that is AccessTokenSecret.
	Access Access

	// SecretNamespace is the namespace of the Secret in the hub. It must exist.
	// Defaults to Namespace.
	SecretNamespace string

	// MemberNamespace is the namespace of the ServiceAccount in the member, which is
	// created if it does not exist. Defaults to DefaultMemberNamespace.
	MemberNamespace string

	// Server is the https URL of the member for controllers, if they cannot use that
	// of Member.
	Server string

	// CAData are the certificates of the authority for the server, in PEM form.
	// Defaults to that of Member.
	CAData []byte

	// Labels of the profile, besides those that Register adds.
	Labels map[string]string

	// TokenLifetime is the requested lifetime of the token with AccessTokenSecret, at
	// least MinTokenLifetime. The member may shorten it. Defaults to
	// DefaultTokenLifetime.
	TokenLifetime time.Duration

	// ServiceAccount is the ServiceAccount of the hub whose tokens the member is to
	// accept with AccessOIDC: that of the plugin's flag --service-account, best one
	// without permissions in the hub. Required for AccessOIDC.
	ServiceAccount types.NamespacedName

	// Audience of these tokens. It must be one of the member alone. Defaults to the
	// server's URL, which the plugin oidc accepts without its flag --allowed-audience.
	Audience string

	// UsernamePrefix precedes the user name that the member derives from a token, in
	// the result of AuthenticationConfiguration. Defaults to DefaultUsernamePrefix.
	UsernamePrefix string

	// Replace allows that the name stands for another cluster than before: its profile
	// and Secret are deleted first. What was created in that cluster is not.
	Replace bool

	// DryRun lets the API servers validate the changes, and makes none.
	DryRun bool

	// OnChange receives each change when it was made. Defaults to nothing.
	OnChange func(Change)
}

// complete returns the options with defaults, or an ErrInvalidOptions.
func (o Options) complete() (Options, error) {
	o.Access = cmp.Or(o.Access, AccessAuto)
	o.SecretNamespace = cmp.Or(o.SecretNamespace, o.Namespace)
	o.MemberNamespace = cmp.Or(o.MemberNamespace, DefaultMemberNamespace)
	o.TokenLifetime = cmp.Or(o.TokenLifetime, DefaultTokenLifetime)
	o.UsernamePrefix = cmp.Or(o.UsernamePrefix, DefaultUsernamePrefix)
	if o.Hub == nil || o.Member == nil {
		return o, invalid("the configurations of hub and member are required")
	}
	if err := checkNames(o.Namespace, o.Name, o.SecretNamespace, o.MemberNamespace); err != nil {
		return o, err
	}
	switch {
	case len(o.Rules) == 0:
		return o, invalid("rules are required: what controllers may do in the member")
	case o.Access != AccessAuto && o.Access != AccessOIDC && o.Access != AccessTokenSecret:
		return o, invalid("access %q: valid values are %s, %s and %s", o.Access, AccessAuto, AccessOIDC, AccessTokenSecret)
	case o.TokenLifetime < MinTokenLifetime:
		return o, invalid("token lifetime %s: must be at least %s", o.TokenLifetime, MinTokenLifetime)
	case o.Access == AccessOIDC && o.ServiceAccount.Name == "":
		return o, invalid("access by oidc needs the service account of the hub whose tokens the member is to accept")
	case o.ServiceAccount.Name != "" && (!isName(o.ServiceAccount.Name) || !isLabel(o.ServiceAccount.Namespace)):
		return o, invalid("service account %q: must be namespace/name", o.ServiceAccount)
	case strings.HasPrefix(o.UsernamePrefix, "system:"):
		return o, invalid("prefix of user names %q: must not begin with system:, which Kubernetes reserves", o.UsernamePrefix)
	case !isVisible(o.UsernamePrefix) || strings.ContainsAny(o.UsernamePrefix, `'\`):
		return o, invalid(`prefix of user names %q: must have only visible ASCII characters without ' and \`, o.UsernamePrefix)
	}
	return o.completeServer()
}

// completeServer fills in the server, its certificate authority and the audience.
func (o Options) completeServer() (Options, error) {
	given := o.Server != ""
	o.Server = cmp.Or(o.Server, o.Member.Host)
	server, err := url.Parse(o.Server)
	if err != nil || server.Scheme != "https" || server.Hostname() == "" || server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return o, invalid("the server of the member must be an https URL such as https://c1.example.com:6443")
	}
	o.Server = strings.TrimRight(o.Server, "/")
	o.Audience = cmp.Or(o.Audience, ownAudience(server))
	if !isVisible(o.Audience) {
		return o, invalid("audience %q: must have only visible ASCII characters", o.Audience)
	}
	tls := rest.CopyConfig(o.Member)
	if err := rest.LoadTLSFiles(tls); err != nil {
		return o, invalid("configuration of the member: %w", err)
	}
	switch {
	case len(o.CAData) > 0:
	case tls.Insecure:
		return o, invalid("the configuration of the member does not verify the server's certificate, which controllers must: give its certificate authority")
	default:
		o.CAData = tls.CAData
	}
	if tls.ServerName != "" && !given {
		return o, invalid("the configuration of the member has a tls-server-name, which a profile must not have: give a server whose name is in its certificate")
	}
	return o, nil
}

// ownAudience returns the URL of a server in the spelling of the plugin oidc, for which
// it is an audience that belongs to the server.
func ownAudience(server *url.URL) string {
	host := strings.ToLower(server.Host)
	if port := server.Port(); port == "" || port == "443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return "https://" + host + strings.TrimRight(server.EscapedPath(), "/")
}

// checkNames checks names that become those of objects.
func checkNames(namespace, name string, namespaces ...string) error {
	for _, namespace := range append([]string{namespace}, namespaces...) {
		if !isLabel(namespace) {
			return invalid("namespace %q: must be a DNS-1123 label", namespace)
		}
	}
	if !isName(name) || len(name) > validation.DNS1123LabelMaxLength {
		return invalid("name %q: must be a DNS-1123 subdomain of at most %d characters", name, validation.DNS1123LabelMaxLength)
	}
	return nil
}

func isName(text string) bool  { return len(validation.IsDNS1123Subdomain(text)) == 0 }
func isLabel(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }

func isVisible(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalidOptions, fmt.Errorf(format, args...))
}
