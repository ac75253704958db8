// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gettoken

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/rollcall-dev/rollcall/internal/cli/command"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// execInfo is the variable with the request to an exec plugin, and the request of a
// script, which sends none.
const (
	execInfo       = "KUBERNETES_EXEC_INFO"
	defaultRequest = execInfo + `={"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}}`
)

// printExecCredential answers the request in the environment.
func (o *options) printExecCredential(ctx context.Context, name string) error {
	env := os.Environ()
	if os.Getenv(execInfo) == "" {
		env = append(env, defaultRequest)
	}
	p := &execPlugin{get: func(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
		r, err := o.get(ctx, name, request)
		return r.credential, err
	}}
	var stderr bytes.Buffer
	// The limits are those of the inventory and of the plugin.
	if plugin.Run(ctx, p, []string{"--timeout=0"}, env, o.env.Out, &stderr) == plugin.ExitOK {
		return nil
	}
	if err := p.failure(); err != nil {
		return err
	}
	return errors.New(strings.TrimPrefix(strings.TrimSpace(stderr.String()), p.Name()+": "))
}

// execPlugin is the command as a plugin.
type execPlugin struct {
	get func(ctx context.Context, request plugin.Request) (*plugin.Credential, error)

	mu  sync.Mutex // guards err
	err error
}

var _ plugin.Plugin = &execPlugin{}

// Name implements plugin.Plugin.
func (p *execPlugin) Name() string { return Name }

// Version implements plugin.Plugin.
func (p *execPlugin) Version() string { return plugin.BuildVersion() }

// Credential implements plugin.Plugin.
func (p *execPlugin) Credential(ctx context.Context, request plugin.Request) (*plugin.Credential, error) {
	credential, err := p.get(ctx, request)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	return credential, err
}

// failure returns the error of Credential.
func (p *execPlugin) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// printSummary prints whose credential it is and when it expires.
func (o *options) printSummary(r result) error {
	w := tabwriter.NewWriter(o.env.Out, 0, 8, 3, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			_, _ = fmt.Fprintf(w, "%s:\t%s\n", name, value)
		}
	}
	row("Profile", command.OneLine(r.profile))
	row("Server", command.OneLine(r.server))
	row("Provider", command.OneLine(r.provider))
	row("Identity", command.OneLine(identity(r.credential)))
	row("Expires", expiry(r.credential.Expiry, time.Now()))
	if token := r.credential.Token; token != "" {
		row("Token", o.secret(token))
	}
	if key := r.credential.ClientKey; len(key) > 0 && !o.showToken {
		row("Private key", o.secret(string(key)))
	}
	if err := w.Flush(); err != nil || !o.showToken {
		return err
	}
	_, err := fmt.Fprintf(o.env.Out, "%s%s", r.credential.ClientCertificate, r.credential.ClientKey)
	return err
}

func (o *options) secret(text string) string {
	if o.showToken {
		return command.OneLine(text)
	}
	return o.env.Paint(command.Faint, fmt.Sprintf("hidden (%d characters), shown with --show-token", len(text)))
}

func expiry(at, now time.Time) string {
	if at.IsZero() {
		return "unknown"
	}
	return fmt.Sprintf("%s (in %s)", at.Local().Format(time.RFC3339), duration.HumanDuration(at.Sub(now)))
}

// identity returns the user that the credential names. Only the API server knows whether
// that is right.
func identity(c *plugin.Credential) string {
	if block, _ := pem.Decode(c.ClientCertificate); block != nil && c.Token == "" {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "unknown (the certificate cannot be read)"
		}
		user := fmt.Sprintf("%q", certificate.Subject.CommonName)
		if groups := certificate.Subject.Organization; len(groups) > 0 {
			user += fmt.Sprintf(" in groups %q", groups)
		}
		return user + ", says the certificate"
	}
	var claims struct {
		Subject string `json:"sub"`
		Issuer  string `json:"iss"`
	}
	parts := strings.Split(c.Token, ".")
	if len(parts) == 3 {
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && json.Unmarshal(payload, &claims) == nil && claims.Subject != "" {
			return fmt.Sprintf("%q of issuer %q, says the token", claims.Subject, claims.Issuer)
		}
	}
	return "unknown (the token does not say)"
}
