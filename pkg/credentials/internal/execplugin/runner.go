// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

// Package execplugin runs credential plugins, as processes or in this process.
//
// An [Invocation] has what a provider and a profile define for a run. A [Runner]
// runs it and returns the credential, or a [RunError].
package execplugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/fingerprint"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// Options configure a Runner. All are required but PluginDirs and Plugins.
type Options struct {
	// PluginDirs are the folders that have the commands without a path.
	PluginDirs []string

	// Plugins are those in this process, by name.
	Plugins map[string]func() plugin.Plugin

	// Timeout limits the duration of a run.
	Timeout time.Duration

	// MaxConcurrentRuns limits the number of runs of a provider at the same time.
	MaxConcurrentRuns int
}

// Runner runs plugins.
type Runner struct {
	options Options
	slots   *slots
	digests digests

	// inProcess has a channel for each run in this process, by the digest of its
	// Invocation. The channel is closed when the run returns.
	inProcess sync.Map
}

// NewRunner returns a Runner.
func NewRunner(options Options) *Runner {
	return &Runner{options: options, slots: newSlots(options.MaxConcurrentRuns)}
}

// Run runs the plugin once the provider has a free slot, and calls started before.
// The last credential of the same Invocation, or nil, decides which runs are
// first. Errors are a *RunError, or the context's if that has ended, or ErrNotRun
// if it ended while waiting for a slot. The plugin has ended when Run returns.
func (r *Runner) Run(
	ctx context.Context, provider string, i *Invocation, last *authn.Credential, started func(),
) (_ *authn.Credential, err error) {
	key := fingerprint.Of(i)
	release, err := r.slots.acquire(ctx, provider, r.slots.rankOf(key, last))
	if err != nil {
		return nil, err
	}
	defer release()
	start := time.Now()
	defer func() { r.slots.note(key, time.Since(start), err) }()
	started()
	return r.run(ctx, i)
}

// run is Run with a slot.
func (r *Runner) run(ctx context.Context, i *Invocation) (*authn.Credential, error) {
	command, execute := i.InProcess, r.executeInProcess
	if command == "" {
		command, _ = r.Locate(i.Command) // execute returns the error
		execute = r.execute
	}
	stdout, stderr, code, err := execute(ctx, i)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var c *authn.Credential
	if err == nil {
		if c, err = parseOutput(stdout, time.Now()); err == nil {
			return c, nil
		}
	}
	failed := &RunError{Command: command, ExitCode: code, Stderr: printable(stderr, secretsIn(stdout)), Err: err}
	if errors.Is(err, errdefs.ErrPluginMissing) {
		failed.InstallHint = i.Hint
	}
	return nil, failed
}

// limit returns a context that ends with an error of the run: after the
// timeout, or when the function is called.
func (r *Runner) limit(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	limited, fail := context.WithCancelCause(ctx)
	timeout := r.options.Timeout
	timer := time.AfterFunc(timeout, func() { fail(fmt.Errorf("%w after %s", errdefs.ErrTimeout, timeout)) })
	return limited, func(cause error) {
		fail(cause)
		timer.Stop()
	}
}
