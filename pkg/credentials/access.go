// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
)

// Access connects clients to one cluster and authenticates them there. It is
// safe for concurrent use. Printing one shows no secret.
//
// An Access uses no resources until the first call of RESTConfig. Call Release
// when it is no longer used.
type Access struct {
	transport *authn.Transport
}

// backend is an authn.Backend that can be described.
type backend interface {
	authn.Backend
	describe() description
	config() *rest.Config
	portable() *rest.Config
	clone() backend
	explain(e *Explanation)
}

// description is what an Access shows of its backend.
type description struct {
	provider    string
	server      string
	fingerprint string
}

func newAccess(b backend) *Access { return &Access{transport: authn.NewTransport(b)} }

func (a *Access) backend() backend { return a.transport.Backend().(backend) }

// Provider returns the name of the provider in use, or "" for an Access made by
// FromRESTConfig.
func (a *Access) Provider() string { return a.backend().describe().provider }

// Server returns the URL of the API server.
func (a *Access) Server() string { return a.backend().describe().server }

// Fingerprint returns a digest of what the connection depends on: the endpoint,
// TLS, and how the credential is obtained. Accesses with equal fingerprints
// make the same connection. The digest reveals no secret and has no meaning in
// another process.
func (a *Access) Fingerprint() string { return a.backend().describe().fingerprint }

// RESTConfig returns a managed configuration, a new copy on each call, with
// client-side rate limits turned off. All clients made of an Access's copies
// share connections and the credential. The first request runs the plugin.
//
// The caller may set what concerns requests: UserAgent, Impersonate, QPS,
// ContentConfig, Timeout, Wrap. A request that has an Authorization header
// already, as with the caller's own BearerToken, keeps it. Clearing a credential
// or Impersonate in the copy of an Access made by FromRESTConfig has no effect:
// make another Access. What concerns connections (TLS, Dial, Proxy, Host) belongs
// to the Access: changing it in the copy has no effect or, for another host or
// without the client certificate that was there, makes requests fail. Requests
// fail with an *Error, and after Release with ErrReleased, without being sent.
//
// A Transport that the caller sets is kept: its requests get the credential. Set
// wrappers with Wrap: to assign WrapTransport removes the credential.
//
// Clients that make connections of their own, as for "exec" and "port-forward" into
// pods, get the address, the authorities, the token and the client certificate of the
// moment, also those made of a copy from before a Switch. Their requests fail if the
// proxy has changed since that copy, if the TLS settings have changed since the client
// was made, or if a plugin gives a certificate and the endpoint has neither
// authorities nor a server name. Release does not close their connections.
func (a *Access) RESTConfig() *rest.Config {
	_ = a.transport.Open() // requests return the error
	b := a.backend()
	config := b.config()
	certificate := config.CertFile != "" || len(config.CertData) > 0
	config.WrapTransport = a.transport.Wrapper(b, headersOf(config), certificate)
	return config
}

// PortableRESTConfig returns a configuration, a new copy on each call, that
// depends on nothing of this package: client-go's own authenticator runs the
// plugin. It is meant for kubeconfigs and other processes. It has none of the
// guarantees of the managed one, and neither Release nor Switch changes it. If
// the provider has a plugin in this process and no command, requests fail with
// ErrNotPortable.
func (a *Access) PortableRESTConfig() *rest.Config { return a.backend().portable() }

// Expiry returns when the credential in use expires, and whether that is known:
// not before the first request, not of a credential without an expiry, and not
// of an Access made by FromRESTConfig. It does not block.
func (a *Access) Expiry() (time.Time, bool) { return a.transport.Expiry() }

// DescribeToken returns the issuer and the audiences of the bearer token in use, for
// errors: a cluster that refuses it (401) may not trust that issuer, or expect another
// audience. It is "" for what is not a JSON Web Token, before the first request, and
// for an Access made by FromRESTConfig. It contains no secret and does not block.
func (a *Access) DescribeToken() string { return a.transport.DescribeToken() }

// Clone returns another Access to the same cluster, with the same credential and the
// same fingerprint, and with connections of its own. It must be released, unless an
// Access was switched to it. To switch an Access to its clone replaces all of its
// connections, for example if they are dead, although nothing has closed them. The
// clone of a released Access can be used.
func (a *Access) Clone() *Access { return newAccess(a.backend().clone()) }

// Switch moves the clients of the Access, those made before and those to come,
// to the endpoint of the next Access, with its TLS settings, proxy and
// credential. Their URLs may have the address of any of the last endpoints of the
// Access and of next, 64 at most: for an older one, requests fail with ErrDenied
// and the client must be made again. Provider, Server, Fingerprint, Expiry and the
// configurations are those of next from then on.
//
// The connections to the old endpoint are closed. A request that has no
// connection yet, or that only reads and does not upgrade its connection, is sent
// to the new one, if its body can be read again. Any other fails as on a dropped
// connection, and so do watches.
//
// Then next is part of the Access: its clients follow the Access, and releasing
// it has no effect. Switch fails, and changes nothing, if one of the two is
// released or was switched to, or if next cannot be connected, for example
// because its Server is not a URL.
func (a *Access) Switch(next *Access) error {
	if next == nil {
		return errors.New("cannot switch an access to none: next is nil")
	}
	return a.transport.Switch(next.transport)
}

// CloseIdleConnections closes the connections that no request uses.
func (a *Access) CloseIdleConnections() { a.transport.CloseIdleConnections() }

// Release ends the use of the Access. Its connections are closed, also those in
// use: what is under way, such as a watch, fails as on a dropped connection. The
// last Access that uses a credential drops it and stops a run of the plugin.
// Release may be called more than once and does not block.
func (a *Access) Release() { a.transport.Release() }

// String returns the provider and the server.
func (a *Access) String() string {
	d := a.backend().describe()
	if d.provider == "" {
		return fmt.Sprintf("access to %s", d.server)
	}
	return fmt.Sprintf("access to %s by provider %q", d.server, d.provider)
}

// Format implements fmt.Formatter: every verb prints what String returns.
func (a *Access) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, a.String()) }

// headersOf returns the headers that client-go adds to requests because of the
// configuration's credentials.
func headersOf(config *rest.Config) http.Header {
	recorder := &headerRecorder{}
	var rt http.RoundTripper = recorder
	switch {
	case config.BearerToken != "":
		rt = transport.NewBearerAuthRoundTripper(config.BearerToken, rt)
	case config.Username != "":
		rt = transport.NewBasicAuthRoundTripper(config.Username, config.Password, rt)
	}
	if config.Impersonate.UserName != "" {
		rt = transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig(config.Impersonate), rt)
	}
	_, _ = rt.RoundTrip(&http.Request{}) //nolint:bodyclose // There is no response.
	return recorder.header
}

// headerRecorder notes the headers of a request.
type headerRecorder struct{ header http.Header }

func (r *headerRecorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.header = request.Header
	return nil, errors.New("not sent")
}
