// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"time"
)

// Plugin obtains credentials.
type Plugin interface {
	// Name is the program's name, as it is shown in help and errors.
	Name() string

	// Version is the program's version; see BuildVersion.
	Version() string

	// Credential returns a credential for the cluster of the request. It
	// returns when the context ends. The text of its errors reaches logs: it
	// should say what to do, and must not have a secret in it. ErrUsage and
	// ErrBadRequest, wrapped, choose the exit code.
	Credential(ctx context.Context, request Request) (*Credential, error)
}

// Flagger is a Plugin that has flags.
type Flagger interface {
	Plugin

	// AddFlags registers the flags. It is called once, before Credential. The
	// names help, version, explain and timeout are taken.
	AddFlags(flags *flag.FlagSet)
}

// Describer is a Plugin that has more to say in its help.
type Describer interface {
	Plugin

	// Description is shown between the usage line and the flags.
	Description() string
}

// Explainer is a Plugin that can say what Credential would do.
type Explainer interface {
	Plugin

	// Explain returns what Credential would do for the request, a line each:
	// which identity it would use, what it would ask whom for, what it would
	// refuse. It looks at flags, environment and local files, and makes no
	// request. The request may be the zero one. What it returns is printed for
	// --explain, also together with an error, and must not have a secret in it.
	Explain(ctx context.Context, request Request) ([]string, error)
}

// Credential is what a plugin obtained: a token, or a client certificate with
// its key, or both. Printing one shows no secret.
type Credential struct {
	// Token is a bearer token. White space around it is removed.
	Token string

	// ClientCertificate is a certificate, with intermediates, in PEM form.
	ClientCertificate []byte

	// ClientKey is the certificate's key in PEM form.
	ClientKey []byte

	// Expiry is when the credential expires. Zero means that it is not known;
	// callers then ask again from time to time.
	Expiry time.Time
}

// String says what there is.
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

// BuildVersion returns the version of the program's main module, as the Go
// command recorded it: a tag, or "(devel)".
func BuildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
