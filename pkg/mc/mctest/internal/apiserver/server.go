// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is the Kubernetes API server behind mctest: HTTP in front,
// [k8s.io/apimachinery] for the rules of the API, and a store in memory.
//
// A request passes through these stages, each in a file of its own: it is
// parsed (request), counted (counters), fails if a fault matches (faults), is
// authenticated (auth), decoded and answered (handler, codec, negotiate). The
// operations on objects (create, update, delete, patch, apply, list, watch) are
// independent of HTTP, so that tests can set up a cluster without it.
package apiserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/rest"

	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/listener"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/resource"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest/internal/store"
)

// Options of a server. Zero values have the defaults that they name.
type Options struct {
	// Types that the server has; DefaultTypes.
	Types *Types
	// History is how many writes of each resource are remembered; 4096.
	History int
	// BookmarkInterval is the time between bookmarks on a watch; 1 minute.
	BookmarkInterval time.Duration
	// WatchWriteTimeout is how long a watcher may take to read what it is
	// sent; 30 seconds.
	WatchWriteTimeout time.Duration
}

// Server is one API server. All methods may be called concurrently.
type Server struct {
	types   *Types
	options Options
	store   *store.Store
	// catalog changes with the CustomResourceDefinitions.
	catalog   atomic.Pointer[resource.Catalog]
	catalogMu sync.Mutex // serialises changes of the catalog
	// converters are created when a custom resource is applied for the
	// first time. Guarded by catalogMu.
	converters map[schema.GroupVersionKind]managedfields.TypeConverter
	// changed wakes open watches after a change of the catalog or the faults.
	changed signal

	tokens   tokens
	faults   faults
	counters counters
	admin    string // token

	authority   atomic.Pointer[authority]
	certificate atomic.Pointer[tls.Certificate]

	http     *http.Server
	ctx      context.Context // of the server; cancelled by Close
	cancel   context.CancelFunc
	running  sync.WaitGroup // the accept loops
	requests sync.RWMutex   // held for reading by each request

	listenerMu sync.Mutex // serialises changes of the listener
	listener   atomic.Pointer[listener.Listener]
}

// New starts a server that has only the namespaces of every cluster.
func New(options Options) (*Server, error) {
	options.Types = cmp.Or(options.Types, DefaultTypes())
	options.History = cmp.Or(options.History, 4096)
	options.BookmarkInterval = cmp.Or(options.BookmarkInterval, time.Minute)
	options.WatchWriteTimeout = cmp.Or(options.WatchWriteTimeout, 30*time.Second)
	s := &Server{
		types: options.Types, options: options, store: store.New(options.History), admin: rand.Text(),
		converters: map[schema.GroupVersionKind]managedfields.TypeConverter{},
		tokens:     tokens{known: map[string]tokenEntry{}},
		counters:   counters{requests: map[attributes]int{}, watches: map[string]int{}},
	}
	s.catalog.Store(options.Types.catalog)
	s.tokens.add(s.admin, User{Username: "admin", UID: "admin", Groups: []string{"system:masters"}}, time.Time{})
	if err := s.RotateAuthority(); err != nil {
		return nil, err
	}
	if err := s.createNamespaces(); err != nil {
		return nil, err
	}
	l, err := listener.New()
	if err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler: s,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			ClientAuth: tls.RequestClientCert,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				return s.certificate.Load(), nil
			},
		},
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ConnContext:       withConnection,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	s.listener.Store(l)
	s.serve(l)
	return s, nil
}

// serve accepts connections until the listener closes.
func (s *Server) serve(l *listener.Listener) {
	inner := l.Inner()
	s.running.Go(func() {
		// It always ends with an error, which is that it was closed.
		_ = s.http.ServeTLS(inner, "", "")
	})
}

// Close stops the server, closes all connections, and waits until nothing of it
// runs.
func (s *Server) Close() {
	s.listenerMu.Lock()
	s.cancel()
	l := s.listener.Load()
	l.SetFrozen(false)
	l.Close()
	l.Release()
	s.listenerMu.Unlock()
	s.http.Close()
	l.CloseConnections(false)
	s.requests.Lock() // waits for the requests
	defer s.requests.Unlock()
	s.running.Wait()
}

// Move moves the server to another address, with the same objects. Connections
// to the old one are closed, and new ones are refused.
func (s *Server) Move() error {
	next, err := listener.New()
	if err != nil {
		return err
	}
	s.listenerMu.Lock()
	if s.ctx.Err() != nil {
		s.listenerMu.Unlock()
		next.Close()
		next.Release()
		return http.ErrServerClosed
	}
	old := s.listener.Swap(next)
	old.SetFrozen(false)
	old.Close()
	old.Release()
	old.CloseConnections(false)
	s.serve(next)
	s.listenerMu.Unlock()
	return s.applyFaults()
}

// Rebuild drops all objects and creates the initial ones again, as if a new
// cluster had been installed at the same address.
func (s *Server) Rebuild() error {
	return s.restart(func() error {
		s.store.Reset()
		s.reloadCustomResources()
		return s.createNamespaces()
	})
}

// Snapshot returns the present objects and resource version.
func (s *Server) Snapshot() *store.Snapshot { return s.store.Snapshot() }

// Restore restarts the server with the objects and the resource version of a
// snapshot.
func (s *Server) Restore(snapshot *store.Snapshot) error {
	return s.restart(func() error {
		s.store.Restore(snapshot)
		s.reloadCustomResources()
		return nil
	})
}

// restart calls the function while there are no connections.
func (s *Server) restart(change func() error) error {
	s.listenerMu.Lock()
	l := s.listener.Load()
	l.Close()
	l.CloseConnections(false)
	err := change()
	s.listenerMu.Unlock()
	return errors.Join(err, s.applyFaults())
}

// RotateAuthority gives the server a new certificate, signed by a new
// authority. Open connections stay open.
func (s *Server) RotateAuthority() error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	certificate, err := ca.serving()
	if err != nil {
		return err
	}
	s.authority.Store(ca)
	s.certificate.Store(certificate)
	return nil
}

// ClientCertificate signs a certificate, in PEM, for a user.
func (s *Server) ClientCertificate(user string, groups ...string) (certificate, key []byte, err error) {
	return s.authority.Load().client(user, groups)
}

// Anonymous returns a config without a credential.
func (s *Server) Anonymous() *rest.Config {
	return &rest.Config{
		Host:            "https://" + s.listener.Load().Address(),
		TLSClientConfig: rest.TLSClientConfig{CAData: s.authority.Load().pem()},
		QPS:             -1,
	}
}

// AdminToken is the bearer token that the server starts with.
func (s *Server) AdminToken() string { return s.admin }

// AddToken adds a bearer token of a user. It never expires if expires is zero.
func (s *Server) AddToken(token string, user User, expires time.Time) {
	s.tokens.add(token, user, expires)
}

// RevokeToken rejects requests with a token with 401. Open watches stay open.
func (s *Server) RevokeToken(token string) { s.tokens.revoke(token) }

// Connections is the number of TCP connections that are open.
func (s *Server) Connections() int { return s.listener.Load().Connections() }

// CloseConnections ends all connections that are open.
func (s *Server) CloseConnections() { s.listener.Load().CloseConnections(false) }

// Compact forgets all history: watches and lists from earlier resource
// versions fail with 410.
func (s *Server) Compact() { s.store.Compact() }

// Revision is the latest resource version.
func (s *Server) Revision() uint64 { return s.store.Revision() }

type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// resetConnection ends the connection that a request came on.
func resetConnection(r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(*tls.Conn); ok {
		if inner, ok := c.NetConn().(*listener.Conn); ok {
			inner.Reset()
		}
	}
}

// signal wakes all goroutines that wait on its channel.
type signal struct {
	mu sync.Mutex
	ch chan struct{} // guarded by mu
}

// wait returns a channel that is closed at the next signal.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
