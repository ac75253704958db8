// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Exit codes of a plugin.
const (
	// ExitOK: the credential is on standard output.
	ExitOK = 0

	// ExitFailed: the credential could not be obtained. Another attempt may
	// succeed.
	ExitFailed = 1

	// ExitUsage: the flags are wrong.
	ExitUsage = 2

	// ExitBadRequest: the request, or the cluster's config in it, is wrong.
	ExitBadRequest = 3

	// ExitInterrupted: a signal ended the plugin.
	ExitInterrupted = 130
)

// Main runs the plugin as a program and does not return. SIGINT and SIGTERM end
// the context.
func Main(p Plugin) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, p, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run is Main without the process: it takes the arguments, without the
// program's name, and the environment, as "name=value", and returns the exit
// code. Nothing but the answer is written to stdout. Errors are one line each.
func Run(ctx context.Context, p Plugin, args, env []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet(p.Name(), flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	version := flags.Bool("version", false, "print the version and exit")
	if f, ok := p.(Flagger); ok {
		f.AddFlags(flags)
	}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printHelp(p, flags, stdout)
		return ExitOK
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err != nil {
		return fail(p, stderr, ExitUsage, fmt.Errorf("%w, see --help", err))
	}
	if *version {
		_, _ = fmt.Fprintf(stdout, "%s %s\n", p.Name(), p.Version())
		return ExitOK
	}

	request, err := parseRequest(env)
	if err != nil {
		return fail(p, stderr, ExitBadRequest, err)
	}
	credential, err := obtain(ctx, p, request)
	if err == nil {
		err = answer(stdout, request.apiVersion, credential)
	}
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil:
		return fail(p, stderr, ExitInterrupted, fmt.Errorf("interrupted: %w", err))
	case errors.Is(err, ErrBadRequest):
		return fail(p, stderr, ExitBadRequest, err)
	default:
		return fail(p, stderr, ExitFailed, err)
	}
}

// obtain calls the plugin. A panic becomes an error.
func obtain(ctx context.Context, p Plugin, request Request) (credential *Credential, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			// The cause could hold anything, so it is not shown but for its type.
			credential, err = nil, fmt.Errorf("internal error: panic of type %T", cause)
		}
	}()
	return p.Credential(ctx, request)
}

// answer checks and prints the credential.
func answer(stdout io.Writer, apiVersion string, credential *Credential) error {
	if credential == nil {
		return errors.New("internal error: no credential and no error")
	}
	token := strings.TrimSpace(credential.Token)
	switch {
	case len(credential.ClientCertificate) > 0 != (len(credential.ClientKey) > 0):
		return errors.New("the credential has only one of client certificate and key")
	case token == "" && len(credential.ClientKey) == 0:
		return errors.New("the credential is empty")
	}
	type status struct {
		ExpirationTimestamp   string `json:"expirationTimestamp,omitempty"`
		Token                 string `json:"token,omitempty"`
		ClientCertificateData string `json:"clientCertificateData,omitempty"`
		ClientKeyData         string `json:"clientKeyData,omitempty"`
	}
	var message struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Spec       struct{} `json:"spec"`
		Status     status   `json:"status"`
	}
	message.Kind, message.APIVersion = "ExecCredential", apiVersion
	message.Status = status{
		Token:                 token,
		ClientCertificateData: string(credential.ClientCertificate),
		ClientKeyData:         string(credential.ClientKey),
	}
	if !credential.Expiry.IsZero() {
		message.Status.ExpirationTimestamp = credential.Expiry.UTC().Format(time.RFC3339)
	}
	if err := json.NewEncoder(stdout).Encode(&message); err != nil {
		return fmt.Errorf("printing the credential: %w", err)
	}
	return nil
}

// fail prints the error as one line and returns the code.
func fail(p Plugin, stderr io.Writer, code int, err error) int {
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", p.Name(), strings.Join(strings.Fields(err.Error()), " "))
	return code
}

func printHelp(p Plugin, flags *flag.FlagSet, stdout io.Writer) {
	_, _ = fmt.Fprintf(stdout, "%s is a credential plugin. Kubernetes clients run it, with %s set.\n\nUsage: %s [flags]\n",
		p.Name(), execInfoVariable, p.Name())
	if d, ok := p.(Describer); ok {
		_, _ = fmt.Fprintf(stdout, "\n%s\n", strings.TrimSpace(d.Description()))
	}
	_, _ = fmt.Fprint(stdout, "\nFlags:\n")
	flags.SetOutput(stdout)
	flags.PrintDefaults()
	_, _ = fmt.Fprintf(stdout, "\nExit codes: %d credential printed, %d not obtained, %d wrong flags, %d wrong request, %d interrupted.\n",
		ExitOK, ExitFailed, ExitUsage, ExitBadRequest, ExitInterrupted)
}
