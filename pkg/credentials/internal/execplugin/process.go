// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package execplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/internal/errdefs"
)

// pipeGrace is how long a child that the plugin has left behind may keep its
// standard output open.
const pipeGrace = time.Second

// execute runs the plugin as a process. It returns the standard output, the end
// of the standard error, and the exit code.
func (r *Runner) execute(ctx context.Context, i *Invocation) (stdout, stderr []byte, code int, err error) {
	path, err := r.Locate(i.Command)
	if err != nil {
		return nil, nil, -1, err
	}
	limited, fail := r.limit(ctx)
	defer fail(nil)

	out := &outputBuffer{full: func() { fail(errTooLong) }}
	end := &tail{}
	command := exec.CommandContext(limited, path, i.Args...)
	if len(i.SHA256) > 0 {
		file, err := r.digests.openVerified(path, i.SHA256)
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

	// Another goroutine could end the thread that has started the plugin.
	runtime.LockOSThread()
	err = command.Run()
	runtime.UnlockOSThread()
	if command.Process != nil {
		_ = killGroup() // children that were left behind
		reapGroup(command)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if cause := context.Cause(limited); cause != nil {
		return out.buffer.Bytes(), end.bytes(), -1, cause // the output, because of its secrets
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.buffer.Bytes(), end.bytes(), 0, nil
	case errors.As(err, &exit):
		return out.buffer.Bytes(), end.bytes(), exit.ExitCode(), errdefs.ErrPluginFailed
	default:
		return nil, end.bytes(), -1, fmt.Errorf("%w: %w", errdefs.ErrPluginFailed, startFault(err))
	}
}

// startFault returns why the executable could not be started, without its path.
func startFault(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	if errors.Is(err, syscall.ENOEXEC) {
		return fmt.Errorf("%w (is a first line such as #!/bin/sh missing?)", err)
	}
	return err
}
