// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
)

// managed is the link of an Access that a Resolver made.
type managed struct {
	pool       *pool
	profile    inventory.Key
	provider   string
	endpoint   *endpoint
	invocation *invocation
	runKey     string // the same for all links whose plugin run is the same

	mu    sync.Mutex     // guards what follows
	auth  *authenticator // from the first config on
	wire  *wire          // of the certificate in use, from the first request on
	ended error          // not nil once released
}

func newManagedAccess(pool *pool, profile inventory.Key, provider string, e *endpoint, i *invocation) *Access {
	return &Access{
		provider:    provider,
		server:      e.Server,
		fingerprint: digest(e, i),
		link: &managed{
			pool:       pool,
			profile:    profile,
			provider:   provider,
			endpoint:   e,
			invocation: i,
			runKey:     digest(i),
		},
	}
}

// baseConfig returns what both forms have in common.
func (m *managed) baseConfig() *rest.Config {
	config := &rest.Config{
		Host: m.endpoint.Server,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:     append([]byte(nil), m.endpoint.CAData...),
			ServerName: m.endpoint.ServerName,
			Insecure:   m.endpoint.Insecure,
		},
		DisableCompression: m.endpoint.DisableCompression,
		QPS:                -1,
	}
	if m.endpoint.ProxyURL != "" {
		// Set only where it must be: with a Proxy function, client-go neither
		// shares transports nor reads HTTPS_PROXY.
		config.Proxy = m.endpoint.proxy()
	}
	return config
}

func (m *managed) config() *rest.Config {
	m.mu.Lock()
	if m.auth == nil && m.ended == nil {
		m.auth, m.ended = m.pool.acquire(m)
	}
	m.mu.Unlock()

	config := m.baseConfig()
	config.WrapTransport = m.wrap
	return config
}

// wrap puts authentication around what client-go made. Its own transport is
// replaced by ours, which presents client certificates and whose connections
// can be closed; anything else (an upgrade to SPDY, a transport of the caller)
// is used as it is.
func (m *managed) wrap(base http.RoundTripper) http.RoundTripper {
	if isPlainTransport(base) {
		base = nil
	}
	return &authRoundTripper{link: m, base: base}
}

func isPlainTransport(rt http.RoundTripper) bool {
	for {
		switch t := rt.(type) {
		case *http.Transport:
			return true
		case utilnet.RoundTripperWrapper:
			rt = t.WrappedRoundTripper()
		default:
			return false
		}
	}
}

// use returns what a request needs, or why there are no more requests.
func (m *managed) use() (*authenticator, *wire, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended != nil {
		return nil, nil, m.ended
	}
	if m.wire == nil {
		m.wire = newWire(m.endpoint, m.auth)
	}
	return m.auth, m.wire, nil
}

// rewire closes all connections, since they were made with another client
// certificate. Requests to come are made on new ones.
func (m *managed) rewire() {
	m.mu.Lock()
	old := m.wire
	m.wire = nil
	m.mu.Unlock()
	old.end(errRewired)
}

func (m *managed) portable() *rest.Config {
	i := m.invocation
	config := m.baseConfig()
	if i.Command == "" {
		config.Wrap(func(http.RoundTripper) http.RoundTripper { return notPortable{m} })
		return config
	}
	// An absolute path always: client-go would look for a name in PATH.
	command, _ := locate(m.pool.runner.dirs, i.Command) // it may come later
	command = filepath.Clean(command)
	exec := &clientcmdapi.ExecConfig{
		APIVersion:         i.apiVersion,
		Command:            command,
		Args:               append([]string(nil), i.Args...),
		Env:                append([]clientcmdapi.ExecEnvVar(nil), i.Env...),
		InstallHint:        i.Hint,
		ProvideClusterInfo: i.provideClusterInfo,
		InteractiveMode:    clientcmdapi.NeverExecInteractiveMode,
		StdinUnavailable:   true,
		PluginPolicy: clientcmdapi.PluginPolicy{
			PolicyType: clientcmdapi.PluginPolicyAllowlist,
			Allowlist:  []clientcmdapi.AllowlistEntry{{Command: command}},
		},
	}
	if i.config != nil {
		exec.Config = &runtime.Unknown{
			Raw:         append([]byte(nil), i.config...),
			ContentType: runtime.ContentTypeJSON,
		}
	}
	config.ExecProvider = exec
	return config
}

// notPortable lets requests fail rather than be anonymous.
type notPortable struct{ link *managed }

func (t notPortable) RoundTrip(request *http.Request) (*http.Response, error) {
	closeBody(request)
	return nil, t.link.wrapError(ErrNotPortable)
}

func (m *managed) expiry() (time.Time, bool) {
	m.mu.Lock()
	auth := m.auth
	m.mu.Unlock()
	if auth == nil {
		return time.Time{}, false
	}
	c := auth.current.Load()
	if c == nil || c.expiry.IsZero() {
		return time.Time{}, false
	}
	return c.expiry, true
}

func (m *managed) release() {
	// In this order, so that no config acquires anything in between.
	m.end(ErrReleased)
	m.pool.release(m)
}

// end closes all connections and lets all requests fail with the error.
func (m *managed) end(err error) {
	m.mu.Lock()
	if m.ended == nil {
		m.ended = err
	}
	old := m.wire
	m.wire = nil
	m.mu.Unlock()
	old.end(err)
}

// wrapError says whose error it is.
func (m *managed) wrapError(err error) error {
	return &Error{Profile: m.profile, Provider: m.provider, Err: err}
}
