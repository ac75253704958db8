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

	// pipeGrace is how long something that the plugin started may hold standard
	// output or standard error open after the plugin has ended.
	pipeGrace = time.Second
)

// suite is one command under test.
type suite struct {
	command Command

	mu       sync.Mutex
	answered []string // guarded by mu: the secrets of answers so far
}

func newSuite(command Command) *suite {
	command.Args = slices.Clone(command.Args)
	command.Env = slices.Clone(command.Env)
	if command.Cluster == nil {
		command.Cluster = &plugin.Cluster{Server: "https://plugintest.invalid:6443"}
	}
	if command.Timeout <= 0 {
		command.Timeout = 30 * time.Second
	}
	command.Secrets = slices.Clone(command.Secrets)
	return &suite{command: command}
}

// variation is how one run differs from the command.
type variation struct {
	command Command
	request string   // KUBERNETES_EXEC_INFO, or "" to leave it unset
	args    []string // put behind the command's
	stdin   *os.File // nil: nothing to read
	stdout  *os.File // nil: kept

	signal  os.Signal       // nil: none is sent
	waiting <-chan struct{} // the signal is sent once this is closed; nil: at once
}

// outcome is what came of a run.
type outcome struct {
	stdout, stderr []byte
	code           int           // -1 where a signal ended the run
	lasted         time.Duration // after the signal
}

// run runs the plugin once. Errors are about what no run may do, whatever its
// outcome: not come to an end, leave something behind, show a secret.
func (s *suite) run(ctx context.Context, v variation) (*outcome, error) {
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
	killAll := withoutTerminal(command)
	command.Cancel = killAll

	if err := command.Start(); err != nil {
		return nil, err
	}
	finish := v.sendSignal(command.Process)
	err = command.Wait()
	lasted := finish()
	_ = killAll() // what it may have left behind
	o := &outcome{stdout: stdout.Bytes(), stderr: stderr.Bytes(), code: command.ProcessState.ExitCode(), lasted: lasted}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, fmt.Errorf("the run did not end within %s", v.command.Timeout)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, errors.New("the run left a process behind that holds standard output or standard error open")
	}
	if err := leftovers(dir); err != nil {
		return nil, err
	}
	return o, s.guardSecrets(o)
}

// sendSignal sends the signal in due time. What it returns is to be called when
// the process has ended, and returns how long after the signal that was, or 0.
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

// environment is the test's, the command's, and the request.
func environment(v variation) []string {
	env := slices.DeleteFunc(append(os.Environ(), v.command.Env...), func(variable string) bool {
		return strings.HasPrefix(variable, execInfoVariable+"=")
	})
	if v.request != "" {
		env = append(env, execInfoVariable+"="+v.request)
	}
	return env
}

func leftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("the run left %q in the working directory", entries[0].Name())
	}
	return nil
}

// guardSecrets notes the secrets of an answer, and looks for all known ones
// where none may be.
func (s *suite) guardSecrets(o *outcome) error {
	s.mu.Lock()
	for _, secret := range secretsIn(o.stdout) {
		if !slices.Contains(s.answered, secret) {
			s.answered = append(s.answered, secret)
		}
	}
	s.mu.Unlock()
	return s.shows("standard error", o.stderr)
}

// shows returns an error where there is a known secret in the text.
func (s *suite) shows(what string, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	inText := func(secret string) bool { return secret != "" && bytes.Contains(text, []byte(secret)) }
	switch {
	case slices.ContainsFunc(s.command.Secrets, inText):
		return fmt.Errorf("%s shows a secret", what)
	case slices.ContainsFunc(s.answered, inText):
		return fmt.Errorf("%s shows the credential's token, or contains it by chance: use a longer token in the test", what)
	}
	return nil
}
