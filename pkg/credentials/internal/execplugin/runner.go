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
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
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

	// MaxConcurrentRuns limits the number of runs at the same time.
	MaxConcurrentRuns int
}

// Runner runs plugins.
type Runner struct {
	options Options
	slots   chan struct{} // has an element for each run

	// inProcess has a channel for each run in this process, by the digest of its
	// Invocation. The channel is closed when the run returns.
	inProcess sync.Map
}

// NewRunner returns a Runner.
func NewRunner(options Options) *Runner {
	return &Runner{options: options, slots: make(chan struct{}, options.MaxConcurrentRuns)}
}

// Run runs the plugin once a slot is free, and calls started before. Errors are a
// *RunError, or the context's if that has ended, or ErrNotRun if it ended while
// waiting for a slot. The plugin has ended when Run returns.
func (r *Runner) Run(ctx context.Context, i *Invocation, started func()) (*authn.Credential, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, authn.ErrNotRun
	}
	started()
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
	program := strings.TrimSuffix(filepath.Base(command), ".exe")
	failed := &RunError{Command: command, ExitCode: code, Stderr: printable(program, stderr, secretsIn(stdout)), Err: err}
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
