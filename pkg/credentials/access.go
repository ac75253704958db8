// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"
)

// Access is how to reach one cluster and how to authenticate there. It is safe
// for concurrent use. Printing one shows no secret.
//
// An Access costs nothing until the first call of RESTConfig. Whoever calls
// that calls Release in the end.
type Access struct {
	provider    string
	server      string
	fingerprint string
	link        link
}

// link is the part of an Access that is different for managed and given ones.
type link interface {
	config() *rest.Config
	portable() *rest.Config
	expiry() (time.Time, bool)
	release()
}

// Provider returns the name of the provider in use, or "" for an Access made by
// FromRESTConfig.
func (a *Access) Provider() string { return a.provider }

// Server returns the URL of the API server.
func (a *Access) Server() string { return a.server }

// Fingerprint returns a digest of what the connection depends on: the endpoint,
// TLS, and how the credential is obtained. Accesses with equal fingerprints
// lead to the same connection. It gives away no secret, and means nothing to
// another process.
func (a *Access) Fingerprint() string { return a.fingerprint }

// RESTConfig returns a managed configuration, a new copy on each call, with
// client-side rate limits turned off. All clients made of an Access's copies
// share connections and the credential. The first request runs the plugin.
//
// The caller may set what has to do with requests: UserAgent, Impersonate, QPS,
// ContentConfig, Timeout, Wrap. What has to do with connections (TLS, Dial,
// Proxy, Host) is the Access's; changing it in the copy has no effect or, for
// another host, makes requests fail. A request that has an Authorization header
// already keeps it. Requests fail with an *Error, and after Release with
// ErrReleased, without being sent.
//
// Clients that bring a connection of their own, as for "exec" and "port-forward"
// into pods, get the token, but no client certificate, and Release does not
// close what they have opened.
func (a *Access) RESTConfig() *rest.Config { return a.link.config() }

// PortableRESTConfig returns a configuration, a new copy on each call, that
// depends on nothing of this package: the plugin is run by client-go's own
// authenticator. It is meant for kubeconfigs and other processes. None of the
// promises of the managed one hold for it, and Release does not end it. Where
// the provider has a plugin in this process and no command, requests fail with
// ErrNotPortable.
func (a *Access) PortableRESTConfig() *rest.Config { return a.link.portable() }

// Expiry returns when the credential in use expires, and whether that is known:
// not before the first request, not of a credential that tells no expiry, and
// not of an Access made by FromRESTConfig. It returns at once.
func (a *Access) Expiry() (time.Time, bool) { return a.link.expiry() }

// Release says that the Access is not used any more. Its connections are
// closed, those in use too: what is under way, such as a watch, ends as if the
// network had dropped it. The
// last Access that uses a credential drops that credential and stops a run of
// the plugin. It may be called more than once and does not wait for anything.
func (a *Access) Release() { a.link.release() }

// String returns the provider and the server.
func (a *Access) String() string {
	if a.provider == "" {
		return fmt.Sprintf("access to %s", a.server)
	}
	return fmt.Sprintf("access to %s by provider %q", a.server, a.provider)
}

// Format implements fmt.Formatter: every verb prints what String returns.
func (a *Access) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, a.String()) }
