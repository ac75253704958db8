// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

const (
	execInfoVariable = "KUBERNETES_EXEC_INFO"

	// pipeGrace is how long a child of the plugin may keep standard output or
	// standard error open after the plugin has ended.
	pipeGrace = time.Second
)

// suite tests one command.
type suite struct {
	command Command

	mu      sync.Mutex
	printed []string // guarded by mu: the secrets of all output so far
}

func newSuite(command Command) *suite {
	if command.Cluster == nil {
		command.Cluster = &plugin.Cluster{Server: "https://plugintest.invalid:6443"}
	}
	if command.Timeout <= 0 {
		command.Timeout = 30 * time.Second
	}
	return &suite{command: command}
}

// variation is how one run differs from the command.
type variation struct {
	command *Command // nil: that of the suite
	request string   // "": KUBERNETES_EXEC_INFO is not set
	args    []string // appended to those of the command
	stdin   *os.File // nil: empty
	stdout  *os.File // nil: recorded

	signal  os.Signal       // nil: none is sent
	waiting <-chan struct{} // the signal is sent once this is closed; nil: at once
}

// run runs the plugin once. It returns an error for what no run may do: not end,
// leave files or processes behind, or show a secret.
func (s *suite) run(ctx context.Context, v variation) (*outcome, error) {
	if v.command == nil {
		v.command = &s.command
	}
	path, err := exec.LookPath(v.command.Path)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "plugintest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	limited, cancel := context.WithTimeout(ctx, v.command.Timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(limited, path, append(slices.Clone(v.command.Args), v.args...)...)
	command.Dir = dir
	command.Env = environment(v)
	command.Stdout, command.Stderr = &stdout, &stderr
	if v.stdin != nil {
		command.Stdin = v.stdin
	}
	if v.stdout != nil {
		command.Stdout = v.stdout
	}
	command.WaitDelay = pipeGrace
	kill := startInSession(command)
	command.Cancel = kill

	if err := command.Start(); err != nil {
		return nil, err
	}
	finish := v.sendSignal(command.Process)
	err = command.Wait()
	sinceSignal := finish()
	_ = kill() // processes that it may have left
	o := &outcome{stdout: stdout.Bytes(), stderr: stderr.Bytes(), code: command.ProcessState.ExitCode(), sinceSignal: sinceSignal}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, fmt.Errorf("the run did not end within %s", v.command.Timeout)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, errors.New("the run left a process that keeps standard output or standard error open")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("the run left %q in the working directory", entries[0].Name())
	}
	s.mu.Lock()
	s.printed = append(s.printed, secretsIn(o.stdout)...)
	s.mu.Unlock()
	return o, s.checkNoSecret("standard error", o.stderr)
}

// sendSignal sends the signal at its time. The caller calls finish when the
// process has ended, which returns the time since the signal, or 0.
func (v variation) sendSignal(process *os.Process) (finish func() time.Duration) {
	if v.signal == nil {
		return func() time.Duration { return 0 }
	}
	ended, sent := make(chan struct{}), make(chan time.Time)
	go func() {
		defer close(sent)
		if v.waiting != nil {
			select {
			case <-v.waiting:
			case <-ended:
				return
			}
		}
		now := time.Now()
		_ = process.Signal(v.signal) // it may have ended
		sent <- now
	}()
	return func() time.Duration {
		end := time.Now()
		close(ended)
		if at, ok := <-sent; ok {
			return end.Sub(at)
		}
		return 0
	}
}

// environment returns the variables of the test and the command, and the request.
func environment(v variation) []string {
	env := slices.DeleteFunc(append(os.Environ(), v.command.Env...), func(variable string) bool {
		return strings.HasPrefix(variable, execInfoVariable+"=")
	})
	if v.request == "" {
		return env
	}
	return append(env, execInfoVariable+"="+v.request)
}

// checkNoSecret returns an error if the text contains a known secret.
func (s *suite) checkNoSecret(what string, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	inText := func(secret string) bool { return secret != "" && bytes.Contains(text, []byte(secret)) }
	switch {
	case slices.ContainsFunc(s.command.Secrets, inText):
		return fmt.Errorf("%s shows a secret", what)
	case slices.ContainsFunc(s.printed, inText):
		return fmt.Errorf("%s shows the credential's token, or contains it by chance: use a longer token in the test", what)
	}
	return nil
}
