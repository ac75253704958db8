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

	// ExitTimedOut: the credential was not obtained within the time limit.
	ExitTimedOut = 4

	// ExitInterrupted: a signal ended the plugin.
	ExitInterrupted = 130
)

const (
	// defaultTimeout leaves room, within the 30 s that callers give a plugin,
	// for the plugin itself to say what took so long.
	defaultTimeout = 25 * time.Second

	// grace is how long a plugin may take to return once its context has ended.
	grace = time.Second

	// maxError is how long the line of an error may be, in bytes.
	maxError = 2 << 10
)

// ErrUsage says that the flags are wrong, which a plugin may find out only when
// it is asked for a credential. Run ends with ExitUsage for it.
var ErrUsage = errors.New("wrong flags")

// Main runs the plugin as a program and does not return. SIGINT, SIGTERM and the
// time limit of the flag --timeout, by default 25 s, end the context; a plugin
// that goes on for a second after that is ended with the program.
func Main(p Plugin) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, p, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run is Main without the process: it takes the arguments, without the
// program's name, and the environment, as "name=value", and returns the exit
// code. Nothing but the answer is written to stdout. Errors, panics included, are
// one line each.
func Run(ctx context.Context, p Plugin, args, env []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if cause := recover(); cause != nil {
			code = fail(p, stderr, ExitFailed, panicked(cause))
		}
	}()
	flags, own := newFlags(p)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		printHelp(p, flags, stdout)
		return ExitOK
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && own.timeout < 0:
		err = errors.New("--timeout must not be negative")
	}
	if err != nil {
		return fail(p, stderr, ExitUsage, fmt.Errorf("%w, see --help", err))
	}
	if own.version {
		_, _ = fmt.Fprintf(stdout, "%s %s\n", p.Name(), p.Version())
		return ExitOK
	}

	limited, cancel := ctx, context.CancelFunc(func() {})
	if own.timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, own.timeout)
	}
	defer cancel()
	if own.explain {
		err = explain(limited, p, flags, env, stdout)
	} else {
		err = give(limited, p, env, stdout)
	}
	switch {
	case err == nil:
		return ExitOK
	case ctx.Err() != nil:
		return fail(p, stderr, ExitInterrupted, fmt.Errorf("interrupted: %w", err))
	case limited.Err() != nil:
		return fail(p, stderr, ExitTimedOut, fmt.Errorf("the time limit of %s is over, see --timeout: %w", own.timeout, err))
	case errors.Is(err, ErrUsage):
		return fail(p, stderr, ExitUsage, err)
	case errors.Is(err, ErrBadRequest):
		return fail(p, stderr, ExitBadRequest, err)
	default:
		return fail(p, stderr, ExitFailed, err)
	}
}

// give answers the request.
func give(ctx context.Context, p Plugin, env []string, stdout io.Writer) error {
	request, err := parseRequest(env)
	if err != nil {
		return err
	}
	credential, err := guard(ctx, func() (*Credential, error) { return p.Credential(ctx, request) })
	if err != nil {
		return err
	}
	return answer(stdout, request.apiVersion, credential)
}

// guard calls the plugin's function and waits for it until a little after the
// end of the context. A panic becomes an error.
func guard[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if cause := recover(); cause != nil {
				r.err = panicked(cause)
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

// panicked is the error for a panic. The cause could hold anything, so it is not
// shown but for its type.
func panicked(cause any) error { return fmt.Errorf("internal error: panic of type %T", cause) }

// fail prints the error as one line and returns the code.
func fail(p Plugin, stderr io.Writer, code int, err error) int {
	text := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + " …"
	}
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", p.Name(), text)
	return code
}
