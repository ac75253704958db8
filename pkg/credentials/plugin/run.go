// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/redact"
)

// Exit codes of a plugin.
const (
	// ExitOK: the credential was printed.
	ExitOK = 0

	// ExitFailed: the credential was not obtained. Another attempt may succeed.
	ExitFailed = 1

	// ExitUsage: the flags are wrong.
	ExitUsage = 2

	// ExitBadRequest: the request, or the cluster's config in it, is wrong.
	ExitBadRequest = 3

	// ExitTimedOut: the credential was not obtained within the time limit.
	ExitTimedOut = 4

	// ExitInterrupted: a signal stopped the plugin.
	ExitInterrupted = 130
)

const (
	// defaultTimeout is less than the 30 s that callers allow, so that the
	// plugin can still report what took so long.
	defaultTimeout = 25 * time.Second

	// grace is how long a plugin may take to return after its context ended.
	grace = time.Second

	// maxErrorBytes limits the line of an error.
	maxErrorBytes = 2 << 10
)

// ErrUsage means that the flags are wrong, for plugins that notice it only when
// they obtain a credential. Run returns ExitUsage for it.
var ErrUsage = errors.New("wrong flags")

// Main runs the plugin as a program and does not return. SIGINT, SIGTERM and
// the flag --timeout (default: 25 s) end the context. The program exits at the
// latest one second later, whether the plugin has returned or not.
func Main(p Plugin) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, p, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run is Main for use within a process: it takes the arguments, without the
// program's name, and the environment, as "name=value", and returns the exit
// code. Only output goes to stdout. An error, or a panic, is one line on stderr, in
// which what looks like a secret is redacted.
func Run(ctx context.Context, p Plugin, args, env []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if cause := recover(); cause != nil {
			code = fail(p, stderr, ExitFailed, panicError(cause))
		}
	}()
	flags, common := newFlags(p)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printHelp(p, flags, stdout)
		return ExitOK
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && common.timeout < 0:
		err = errors.New("--timeout must not be negative")
	}
	if err != nil {
		return fail(p, stderr, ExitUsage, fmt.Errorf("%w, see --help", err))
	}
	if common.version {
		_, _ = fmt.Fprintf(stdout, "%s %s\n", p.Name(), p.Version())
		return ExitOK
	}

	limited, cancel := ctx, context.CancelFunc(func() {})
	if common.timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, common.timeout)
	}
	defer cancel()
	if common.explain {
		err = explain(limited, p, flags, env, stdout)
	} else {
		err = printCredential(limited, p, env, stdout)
	}
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil:
		return fail(p, stderr, ExitInterrupted, fmt.Errorf("interrupted: %w", err))
	case limited.Err() != nil:
		return fail(p, stderr, ExitTimedOut, fmt.Errorf("timed out after %s, see --timeout: %w", common.timeout, err))
	case errors.Is(err, ErrUsage):
		return fail(p, stderr, ExitUsage, err)
	case errors.Is(err, ErrBadRequest):
		return fail(p, stderr, ExitBadRequest, err)
	default:
		return fail(p, stderr, ExitFailed, err)
	}
}

// printCredential obtains the credential for the request and prints it.
func printCredential(ctx context.Context, p Plugin, env []string, stdout io.Writer) error {
	request, err := parseRequest(env)
	if err != nil {
		return err
	}
	credential, err := callWithGrace(ctx, func() (*Credential, error) { return p.Credential(ctx, request) })
	if err != nil {
		return err
	}
	return printOutput(stdout, request.apiVersion, credential, time.Now())
}

// callWithGrace calls the function and waits for it until shortly after the end
// of the context. A panic becomes an error.
func callWithGrace[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if cause := recover(); cause != nil {
				r.err = panicError(cause)
			}
			done <- r
		}()
		r.value, r.err = call()
	}()

	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
		var none T
		return none, ctx.Err()
	}
}

// panicError shows only the type of the cause, which may contain a secret.
func panicError(cause any) error { return fmt.Errorf("internal error: panic of type %T", cause) }

// fail prints the error as one line, without what looks like a secret, and returns
// the code.
func fail(p Plugin, stderr io.Writer, code int, err error) int {
	text := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(err.Error(), "?"), func(r rune) bool {
		return r == ' ' || !unicode.IsPrint(r)
	}), " ")
	text = redact.Text(text)
	if len(text) > maxErrorBytes {
		text = strings.ToValidUTF8(text[:maxErrorBytes], "") + " …"
	}
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", p.Name(), text)
	return code
}
