// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// AllowedAudience is an audience that profiles may choose, and the server that
// tokens with it may be sent to.
type AllowedAudience struct {
	// Audience may have one "*", which stands for any text.
	Audience string

	// Server is the https URL of the server. If Audience has a "*", Server has one,
	// too, which stands for the same text. AnyServer means any server: the author of
	// a profile can then have a token sent to a server of their own.
	Server string
}

// AnyServer is the Server of an AllowedAudience that is not limited to one.
const AnyServer = "*"

// ownURL allows a server's own URL as the audience.
var ownURL = AllowedAudience{Audience: "https://*", Server: "https://*"}

// maxAudience is the maximum length of an audience in bytes.
const maxAudience = 1 << 10

// config is the config in a profile.
type config struct {
	Audience string `json:"audience"`
}

// parseAllowedAudience parses the format of String.
func parseAllowedAudience(text string) (AllowedAudience, error) {
	i := strings.LastIndex(text, "=https://")
	if audience, found := strings.CutSuffix(text, "="+AnyServer); found {
		i = len(audience)
	}
	if i < 0 {
		return AllowedAudience{}, errors.New("must be AUDIENCE=SERVER, where SERVER is an https URL, or * for any server")
	}
	return AllowedAudience{Audience: text[:i], Server: text[i+1:]}.complete()
}

// complete checks the entry and returns it with one spelling of its server.
func (a AllowedAudience) complete() (AllowedAudience, error) {
	if err := checkAudience(a.Audience); err != nil {
		return a, fmt.Errorf("the audience %w", err)
	}
	stars := strings.Count(a.Audience, "*")
	if stars > 1 {
		return a, errors.New("the audience must not have more than one *")
	}
	if a.Server == AnyServer {
		return a, nil
	}
	server, err := normalize(a.Server)
	if err != nil {
		return a, fmt.Errorf("the server %w", err)
	}
	if strings.Count(server, "*") != stars {
		return a, errors.New("the server must have one * if the audience has one, and none if it has none")
	}
	return AllowedAudience{Audience: a.Audience, Server: server}, nil
}

// String returns the value of the flag --allowed-audience.
func (a AllowedAudience) String() string { return a.Audience + "=" + a.Server }

// of returns the audience that belongs to the server, if there is one. With
// AnyServer it is a pattern.
func (a AllowedAudience) of(server string) (audience string, found bool) {
	if a.Server == AnyServer {
		return a.Audience, true
	}
	part, found := match(a.Server, server)
	return strings.Replace(a.Audience, "*", part, 1), found
}

// match reports whether the text matches the pattern, and returns what the "*"
// stands for, which is not empty.
func match(pattern, text string) (part string, found bool) {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return "", pattern == text
	}
	text, hasBefore := strings.CutPrefix(text, before)
	part, hasAfter := strings.CutSuffix(text, after)
	return part, hasBefore && hasAfter && part != ""
}

// audience returns the audience that the profile chooses, if it may.
func (p *Plugin) audience(request plugin.Request) (string, error) {
	c, err := plugin.DecodeConfig[config](request)
	if err != nil {
		return "", err
	}
	if err := checkAudience(c.Audience); err != nil {
		return "", fmt.Errorf("%w: config of the cluster: audience %w", plugin.ErrBadRequest, err)
	}
	server, err := normalize(request.Cluster.Server)
	if err != nil {
		return "", fmt.Errorf("%w: the cluster's server %w", plugin.ErrBadRequest, err)
	}
	var others []string
	for _, allowed := range p.allowedAudiences() {
		allowed, err := allowed.complete()
		if err != nil {
			return "", fmt.Errorf("%w: --allowed-audience %s: %w", plugin.ErrUsage, allowed, err)
		}
		audience, found := allowed.of(server)
		switch {
		case !found:
		case allowed.Server == AnyServer:
			if _, found := match(audience, c.Audience); found {
				return c.Audience, nil
			}
		case audience == c.Audience:
			return c.Audience, checkServer(request.Cluster)
		default:
			others = append(others, fmt.Sprintf("%q", audience))
		}
	}
	if len(others) == 0 {
		return "", fmt.Errorf("audience %q is not allowed for server %s, see --allowed-audience", c.Audience, server)
	}
	return "", fmt.Errorf("audience %q is not allowed for server %s, whose audience is %s, see --allowed-audience",
		c.Audience, server, strings.Join(others, " or "))
}

func (p *Plugin) allowedAudiences() []AllowedAudience {
	if len(p.AllowedAudiences) == 0 {
		return []AllowedAudience{ownURL}
	}
	return p.AllowedAudiences
}

// checkServer rejects a profile with which another server than that of the URL
// could receive the token.
func checkServer(cluster *plugin.Cluster) error {
	var what string
	switch {
	case cluster.InsecureSkipTLSVerify:
		what = "does not verify the server's certificate"
	case cluster.TLSServerName != "":
		what = "has a tls-server-name"
	case cluster.ProxyURL != "":
		what = "has a proxy-url"
	default:
		return nil
	}
	return fmt.Errorf("the profile %s, which an audience that belongs to one server does not allow, see --allowed-audience", what)
}

func checkAudience(audience string) error {
	switch {
	case audience == "":
		return errors.New("must be given")
	case len(audience) > maxAudience:
		return fmt.Errorf("must not be longer than %d bytes", maxAudience)
	case strings.ContainsFunc(audience, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("must have only visible ASCII characters")
	}
	return nil
}

// normalize returns one spelling of a server's URL.
func normalize(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("is not an https URL such as https://c1.example.com:6443")
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || port == "443" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return "https://" + host + strings.TrimRight(u.EscapedPath(), "/"), nil
}
