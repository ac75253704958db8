// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/hosts"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/identity"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/mapping"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet/internal/restoptions"
)

// connection is an Access with the REST options. It does not change.
type connection struct {
	access    *credentials.Access
	hosts     *hosts.Use
	server    *url.URL
	config    *rest.Config
	transport http.RoundTripper // authenticates
}

// resolve returns a connection to the profile's cluster. It sends no request.
func (c *Clients) resolve(ctx context.Context, profile *inventory.Profile) (*connection, error) {
	access, err := c.options.Credentials.Resolve(ctx, profile)
	if err != nil {
		return nil, err
	}
	conn, err := c.newConnection(access)
	if err != nil {
		access.Release()
		return nil, err
	}
	return conn, nil
}

func (c *Clients) newConnection(access *credentials.Access) (*connection, error) {
	config := access.RESTConfig()
	if err := restoptions.Apply(config, c.options.RESTOptions); err != nil {
		return nil, err
	}
	server, err := url.Parse(access.Server())
	if err != nil || server.Host == "" {
		return nil, fmt.Errorf("server %q is not a URL with a host", identity.Redact(access.Server()))
	}
	server.Path, server.RawPath = strings.TrimSuffix(server.Path, "/"), strings.TrimSuffix(server.RawPath, "/")
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &connection{access: access, hosts: &hosts.Use{}, server: server, config: config, transport: transport}, nil
}

// switchTo returns the connection to use from now on: the current one if the next one
// is equal, otherwise the next one, which requests under way follow where that is
// possible. The current one may be nil. After an error it stays in use.
func (c *connection) switchTo(next *connection) (*connection, error) {
	switch {
	case c == nil:
		next.hosts.Begin(next.access.Server())
		return next, nil
	case c.access.Fingerprint() == next.access.Fingerprint():
		next.close()
		return c, nil
	}
	if err := c.access.Switch(next.access); err != nil {
		next.close()
		return c, err
	}
	c.hosts.Move(next.access.Server())
	switched := *next
	switched.access, switched.hosts = c.access, c.hosts
	return &switched, nil
}

// close ends the connection, which may be nil, and the requests under way.
func (c *connection) close() {
	if c == nil {
		return
	}
	c.access.CloseIdleConnections()
	c.access.Release()
	c.hosts.End()
}

// configOf returns a configuration for clients of the profile, whose requests are sent
// to its connection of the moment.
func (c *Clients) configOf(key inventory.Key, conn *connection) *rest.Config {
	// The transport authenticates and has TLS, so the host needs its scheme.
	config := rest.AnonymousClientConfig(conn.config)
	config.Host = conn.server.String()
	config.TLSClientConfig = rest.TLSClientConfig{}
	config.Proxy, config.Dial = nil, nil
	config.Transport = &transport{clients: c, key: key, server: conn.server}
	return config
}

// newClient returns a client that knows the resources of the cluster.
func (c *Clients) newClient(ctx context.Context, key inventory.Key) (client.WithWatch, error) {
	config, err := c.Config(ctx, key)
	if err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := mapping.New(config, httpClient)
	if err != nil {
		return nil, err
	}
	// Any lookup sends the discovery requests.
	if _, err := mapper.RESTMapping(corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()); err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{HTTPClient: httpClient, Scheme: c.options.Scheme, Mapper: mapper})
}
