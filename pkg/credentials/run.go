// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/authn"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	// maxAnswer is how much a plugin may print.
	maxAnswer = 1 << 20

	// pipeGrace is how long, after the plugin has ended, a child that it left
	// behind may keep its standard output open.
	pipeGrace = time.Second
)

// runner runs plugins, only so many at once.
type runner struct {
	dirs    []string
	plugins map[string]func() plugin.Plugin
	timeout time.Duration
	slots   chan struct{}

	// inProcess has a channel, which is closed when it returns, for each run in
	// this process, by the digest of its invocation.
	inProcess sync.Map
}

func newRunner(options *Options) *runner {
	return &runner{
		dirs:    options.PluginDirs,
		plugins: options.pluginsByName,
		timeout: options.Timeout,
		slots:   make(chan struct{}, options.MaxConcurrentRuns),
	}
}

// run runs the plugin once, when its turn has come. Errors are a *RunError, or
// the context's where that ended, authn.ErrNotRun where it did so before. When run
// returns, the plugin has ended.
func (r *runner) run(ctx context.Context, m *providerMetrics, i *invocation) (*authn.Credential, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		m.finished(ctx.Err())
		return nil, authn.ErrNotRun
	}
	ended := m.started()
	c, err := r.runNow(ctx, i)
	ended(err)
	return c, err
}

func (r *runner) runNow(ctx context.Context, i *invocation) (*authn.Credential, error) {
	command, execute := i.InProcess, r.executeInProcess
	if command == "" {
		command, _ = locate(r.dirs, i.Command) // execute tells what is wrong with it
		execute = r.execute
	}
	stdout, stderr, code, err := execute(ctx, i)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var c *authn.Credential
	if err == nil {
		if c, err = parseAnswer(stdout, time.Now()); err == nil {
			return c, nil
		}
	}
	program := strings.TrimSuffix(filepath.Base(command), ".exe")
	failed := &RunError{Command: command, ExitCode: code, Stderr: printable(program, stderr, secretsIn(stdout)), Err: err}
	if errors.Is(err, ErrPluginMissing) {
		failed.InstallHint = i.Hint
	}
	return nil, failed
}

// errTooLong is why a plugin was killed that printed more than maxAnswer.
var errTooLong = fmt.Errorf("%w: more than %d bytes on standard output", ErrInvalidOutput, maxAnswer)

// execute returns what the plugin printed, the end of its standard error, and
// its exit code.
func (r *runner) execute(ctx context.Context, i *invocation) (stdout, stderr []byte, code int, err error) {
	path, err := locate(r.dirs, i.Command)
	if err != nil {
		return nil, nil, -1, err
	}
	limited, fail := r.limit(ctx)
	defer fail(nil)

	out := &answerBuffer{full: func() { fail(errTooLong) }}
	end := &tail{}
	command := exec.CommandContext(limited, path, i.Args...)
	if len(i.SHA256) > 0 {
		file, err := openVerified(path, i.SHA256)
		if err != nil {
			return nil, nil, -1, err
		}
		defer file.Close()
		pin(command, file)
	}
	command.Env = i.environment(os.Environ())
	command.Stdout, command.Stderr = out, end
	command.WaitDelay = pipeGrace
	killGroup := ownGroup(command)
	command.Cancel = killGroup

	err = command.Run()
	if command.Process != nil {
		// Children that were left behind, with the pipes open or not.
		_ = killGroup()
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if cause := context.Cause(limited); cause != nil {
		return out.buffer.Bytes(), end.bytes(), -1, cause // of the answer, its secrets are wanted
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.buffer.Bytes(), end.bytes(), 0, nil
	case errors.As(err, &exit):
		return out.buffer.Bytes(), end.bytes(), exit.ExitCode(), ErrPluginFailed
	default:
		return nil, end.bytes(), -1, fmt.Errorf("%w: %w", ErrPluginFailed, startFault(err))
	}
}

// startFault returns why the executable could not be started. The error does not
// repeat the path.
func startFault(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	if errors.Is(err, syscall.ENOEXEC) {
		return fmt.Errorf("%w (is a first line such as #!/bin/sh missing?)", err)
	}
	return err
}

// limit returns a context that ends with an error of the run: after the
// timeout, or when the function is called.
func (r *runner) limit(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	limited, fail := context.WithCancelCause(ctx)
	timer := time.AfterFunc(r.timeout, func() { fail(fmt.Errorf("%w after %s", ErrTimeout, r.timeout)) })
	return limited, func(cause error) {
		fail(cause)
		timer.Stop()
	}
}

// answerBuffer takes maxAnswer bytes, then calls full and takes no more.
type answerBuffer struct {
	// Not embedded: its ReadFrom would go past the limit.
	buffer bytes.Buffer
	full   func()
}

func (b *answerBuffer) Write(p []byte) (int, error) {
	if b.buffer.Len()+len(p) > maxAnswer {
		b.full()
		return 0, errTooLong
	}
	return b.buffer.Write(p)
}
