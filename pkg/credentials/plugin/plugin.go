// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/rules"
)

// Plugin obtains credentials.
type Plugin interface {
	// Name returns the program's name, for help and errors.
	Name() string

	// Version returns the program's version; see BuildVersion.
	Version() string

	// Credential returns a credential for the cluster of the request. It
	// returns when the context ends. The text of its errors appears in logs: it
	// should say what to do, and must not contain a secret. Errors that wrap
	// ErrUsage or ErrBadRequest set the exit code.
	Credential(ctx context.Context, request Request) (*Credential, error)
}

// Flagger is a Plugin that has flags.
type Flagger interface {
	Plugin

	// AddFlags registers the flags. It is called once, before Credential. The
	// names help, version, explain and timeout are reserved.
	AddFlags(flags *flag.FlagSet)
}

// Describer is a Plugin that adds a description to its help.
type Describer interface {
	Plugin

	// Description is shown between the usage line and the flags.
	Description() string
}

// Exampler is a Plugin that has an example in its help. Others have one with
// --explain.
type Exampler interface {
	Plugin

	// Example is one command or more for a shell, each after a comment.
	Example() string
}

// Explainer is a Plugin that can describe what Credential would do.
type Explainer interface {
	Plugin

	// Explain returns the steps that Credential would take for the request, one
	// per line: which identity it would use, what it would request from which
	// server, and what it would refuse. It reads flags, environment and local
	// files, and sends nothing. The request may be the zero value. The steps
	// are printed for --explain, also those returned together with an error,
	// and must not contain a secret.
	Explain(ctx context.Context, request Request) ([]string, error)
}

// Credential is a token, or a client certificate with its key, or both.
// Formatting it never shows a secret. What callers refuse is not printed: one that
// is empty or has expired, a token with other characters than visible ASCII, and a
// certificate and a key that do not match.
type Credential struct {
	// Token is a bearer token. White space around it is removed.
	Token string

	// ClientCertificate is a certificate, with intermediates, in PEM form.
	ClientCertificate []byte

	// ClientKey is the certificate's key in PEM form.
	ClientKey []byte

	// Expiry is when the credential expires. Zero means unknown; callers then
	// run the plugin again from time to time.
	Expiry time.Time
}

// String returns the kind of credential and its expiry.
func (c Credential) String() string {
	kind := "empty credential"
	switch {
	case c.Token != "" && len(c.ClientCertificate) > 0:
		kind = "token and client certificate"
	case c.Token != "":
		kind = "token"
	case len(c.ClientCertificate) > 0:
		kind = "client certificate"
	}
	if c.Expiry.IsZero() {
		return kind
	}
	return kind + " until " + c.Expiry.UTC().Format(time.RFC3339)
}

// Format implements fmt.Formatter: every verb prints what String returns.
func (c Credential) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, c.String()) }

// BuildVersion returns the version of the program's main module as recorded by
// the Go command: a tag, or "(devel)".
func BuildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// JWTExpiry returns when a JSON Web Token expires, from its claim "exp". It
// returns false if the token is not a JWT or has no such claim. The signature is
// not verified: use the result only to decide when to request a new token.
func JWTExpiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Expiry float64 `json:"exp"`
	}
	// Up to the year 9999, the last that RFC 3339 can write.
	if rules.DecodeKnown(payload, &claims) != nil || claims.Expiry <= 0 || claims.Expiry > 253402300799 {
		return time.Time{}, false
	}
	return time.Unix(int64(math.Floor(claims.Expiry)), 0), true
}
