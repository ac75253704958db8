// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopLimit is how long a program may take to end after SIGTERM.
const stopLimit = 15 * time.Second

// goTool runs the go command in the folder and returns its output. The step shows
// the last line of its standard error.
func goTool(ctx context.Context, r *report, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Cancel = ownGroup(command)
	command.WaitDelay = stopLimit
	var stdout strings.Builder
	stderr := newRecord()
	command.Stdout = &stdout
	command.Stderr = io.MultiWriter(stderr, writerFunc(func([]byte) {
		if lines, _ := stderr.From(0); len(lines) > 0 {
			r.Now("%s", lines[len(lines)-1])
		}
	}))
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		lines, _ := stderr.From(0)
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.Join(lines, "\n"))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// ownGroup starts the program in its own process group, which a Ctrl-C in the
// terminal does not reach. terminate sends SIGTERM to the group.
func ownGroup(command *exec.Cmd) (terminate func() error) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// process is a program that runs in the background.
type process struct {
	name   string
	stdout *record
	stderr *record

	terminate func() error
	kill      func() error
	ended     chan struct{} // closed when the program has ended
	err       error         // set before ended is closed
}

// startProcess starts the program. Its output is recorded, and written to the
// files name.out and name.log in the folder.
func startProcess(name, dir, path string, args ...string) (*process, error) {
	stdout, err := os.OpenFile(filepath.Join(dir, name+".out"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	stderr, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, errors.Join(err, stdout.Close())
	}

	p := &process{name: name, stdout: newRecord(), stderr: newRecord(), ended: make(chan struct{})}
	command := exec.Command(path, args...)
	command.Dir = dir
	command.Stdout = io.MultiWriter(p.stdout, stdout)
	command.Stderr = io.MultiWriter(p.stderr, stderr)
	command.WaitDelay = time.Second
	p.terminate = ownGroup(command)
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, stdout.Close(), stderr.Close())
	}
	p.kill = command.Process.Kill
	go func() {
		defer close(p.ended)
		p.err = errors.Join(command.Wait(), stdout.Close(), stderr.Close())
	}()
	return p, nil
}

// Await waits for the first line of the record that matches, from the given index
// on, and returns it.
func (p *process) Await(ctx context.Context, r *record, from int, match func(line string) bool) (string, error) {
	ended := p.ended
	for seen := from; ; {
		lines, changed := r.From(seen)
		for _, line := range lines {
			if match(line) {
				return line, nil
			}
		}
		seen += len(lines)
		if ended == nil {
			return "", p.outcome()
		}
		select {
		case <-changed:
		case <-ended:
			ended = nil // its last lines have been recorded by now
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// outcome returns how the program ended.
func (p *process) outcome() error {
	if p.err == nil {
		return fmt.Errorf("the %s has exited", p.name)
	}
	return fmt.Errorf("the %s has failed: %w", p.name, p.err)
}

// Running returns an error if the program has ended.
func (p *process) Running() error {
	select {
	case <-p.ended:
		return p.outcome()
	default:
		return nil
	}
}

// Stop terminates the program, and kills it if that does not help. It returns an
// error if the program then fails, but not if it had ended before.
func (p *process) Stop() error {
	if p.Running() != nil {
		return nil
	}
	if err := p.terminate(); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return p.err
	case <-time.After(stopLimit):
		err := p.kill()
		<-p.ended
		return errors.Join(fmt.Errorf("the %s did not end within %v and was killed", p.name, stopLimit), err)
	}
}
