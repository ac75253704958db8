// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// server is the address of an API server.
type server struct {
	url      *url.URL // its path has no slash at the end
	scheme   string   // http or https
	hostPort string
}

func newServer(u *url.URL) *server {
	trimmed := *u
	trimmed.Path = strings.TrimSuffix(u.Path, "/")
	trimmed.RawPath = strings.TrimSuffix(u.RawPath, "/")
	return &server{url: &trimmed, scheme: schemeOf(u), hostPort: HostPort(u)}
}

// hasHostOf reports whether both have the same scheme, host and port.
func (s *server) hasHostOf(other *server) bool {
	return s.scheme == other.scheme && s.hostPort == other.hostPort
}

// key identifies the server.
func (s *server) key() serverKey { return serverKey{s.scheme, s.hostPort, s.url.Path} }

type serverKey struct{ scheme, hostPort, path string }

// schemeOf returns http or https, also for the URL of a websocket.
func schemeOf(u *url.URL) string {
	switch u.Scheme {
	case "ws":
		return "http"
	case "wss":
		return "https"
	}
	return u.Scheme
}

// HostPort returns the URL's host in lower case and its port, which may be the
// scheme's default.
func HostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		switch u.Scheme {
		case "http", "ws":
			port = "80"
		case "socks5":
			port = "1080"
		default:
			port = "443"
		}
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// servers are those to which clients of a Transport send their requests.
type servers struct {
	current *server
	all     []*server // also those from before switches, the latest first
	alone   bool      // no other server has the host of the current one, also none that was dropped
	dropped bool      // older servers are not in all
}

// maxServers limits the servers of a Transport.
const maxServers = 64

func newServers(u *url.URL) servers {
	s := newServer(u)
	return servers{current: s, all: []*server{s}, alone: true}
}

// after returns the servers with older ones added, the latest of both.
func (s servers) after(older servers) servers {
	merged := servers{current: s.current, alone: true, dropped: s.dropped || older.dropped}
	merged.all = make([]*server, 0, min(len(s.all)+len(older.all), maxServers))
	seen := make(map[serverKey]bool, cap(merged.all))
	add := func(from []*server, i int) {
		switch {
		case i >= len(from) || seen[from[i].key()]:
		case len(merged.all) == maxServers:
			merged.dropped = true
		default:
			seen[from[i].key()] = true
			merged.all = append(merged.all, from[i])
			merged.alone = merged.alone && (from[i] == s.current || !from[i].hasHostOf(s.current))
		}
	}
	for i := range max(len(s.all), len(older.all)) {
		add(s.all, i)
		add(older.all, i)
	}
	merged.alone = merged.alone && !merged.dropped
	return merged
}

// locate returns the URL on the current server for one on any of the servers:
// the same URL if it is there already. Other hosts are denied, since the
// request would show them the credential; a redirect may lead there.
func (s *servers) locate(u *url.URL) (*url.URL, error) {
	if s.alone && u.Host == s.current.url.Host && u.Scheme == s.current.url.Scheme {
		return u, nil
	}
	scheme, hostPort := schemeOf(u), HostPort(u)
	var from *server // with the longest path that the URL's begins with
	var rest string
	found := false
	for _, candidate := range s.all {
		if candidate.scheme != scheme || candidate.hostPort != hostPort {
			continue
		}
		found = true
		below, ok := cutPath(u.Path, candidate.url.Path)
		if ok && (from == nil || len(candidate.url.Path) > len(from.url.Path)) {
			from, rest = candidate, below
		}
	}
	switch {
	case !found && scheme != "https" && s.current.scheme == "https":
		return nil, fmt.Errorf("%w: request over %s refused: it would send the credential unencrypted", errdefs.ErrDenied, u.Scheme)
	case from == nil && s.dropped: // it may be below a path that was dropped
		return nil, fmt.Errorf("%w: a request to %s, which is not one of the last %d servers: make a new client for %s",
			errdefs.ErrDenied, hostPort+u.Path, maxServers, s.current.hostPort+s.current.url.Path)
	case !found:
		return nil, fmt.Errorf("%w: request to %s refused: the credential is for %s only (a redirect?)", errdefs.ErrDenied, hostPort, s.current.hostPort)
	case from == s.current, from == nil && s.current.hostPort == hostPort && s.current.scheme == scheme:
		return u, nil
	}
	return move(u, from, rest, s.current), nil
}

// move returns the URL with the address of the server to instead of that of
// the server from, which may be nil if the path is kept. The rest is what
// the URL's path has below that of from.
func move(u *url.URL, from *server, rest string, to *server) *url.URL {
	moved := *u
	moved.Host = to.url.Host
	moved.Scheme = to.scheme
	if strings.HasPrefix(u.Scheme, "ws") {
		moved.Scheme = strings.Replace(to.scheme, "http", "ws", 1)
	}
	if from == nil {
		return &moved
	}
	moved.Path, moved.RawPath = to.url.Path+rest, ""
	if escaped, ok := strings.CutPrefix(u.EscapedPath(), from.url.EscapedPath()); ok {
		moved.RawPath = to.url.EscapedPath() + escaped
	}
	return &moved
}

// cutPath returns the rest of the path below the parent, and whether it is
// there.
func cutPath(path, parent string) (rest string, below bool) {
	rest, below = strings.CutPrefix(path, parent)
	return rest, below && (rest == "" || rest[0] == '/' || parent == "")
}
