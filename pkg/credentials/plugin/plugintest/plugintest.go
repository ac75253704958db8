// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// Command is a command line of the plugin that obtains a credential.
type Command struct {
	// Path is the program: a path, or a name to look up in PATH.
	Path string

	// Args are its arguments, without the program's name.
	Args []string

	// Env are variables, as "name=value", added to those of the test.
	Env []string

	// Cluster is the cluster in the requests. Default: one at
	// https://plugintest.invalid:6443, without a config.
	Cluster *plugin.Cluster

	// Secrets must never appear on standard error or in the help, for example
	// the plugin's own keys. Secrets in the plugin's output need not be listed.
	Secrets []string

	// Timeout limits one run. Default: 30 s.
	Timeout time.Duration

	// Stall is called once per signal. It changes the command, which is a copy,
	// so that the plugin waits forever, for example for a server that does not
	// respond, and returns a channel that is closed once the plugin waits.
	// Default: the signals are sent right after the start, which may miss a
	// plugin that ignores them.
	Stall func(command *Command) (waiting <-chan struct{})
}

// Run runs the suite, with a subtest for each check.
func Run(t *testing.T, command Command) {
	t.Helper()
	if err := command.validate(); err != nil {
		t.Fatal(err)
	}
	s := newSuite(command)
	for _, check := range checks() {
		t.Run(check.name, func(t *testing.T) {
			if err := check.run(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
	}
}

// Result is the result of one check.
type Result struct {
	// Check is a sentence about the plugin, such as "does not wait for standard input".
	Check string
	// Err is why it is not true, or nil.
	Err error
}

// Verify runs the suite outside of a test, and calls the function with each result. It
// returns the context's error, or one about the command.
func Verify(ctx context.Context, command Command, report func(Result)) error {
	if err := command.validate(); err != nil {
		return err
	}
	s := newSuite(command)
	for _, check := range checks() {
		err := check.run(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		report(Result{Check: check.name, Err: err})
	}
	return nil
}

func (c *Command) validate() error {
	if _, err := json.Marshal(c.Cluster); err != nil {
		return fmt.Errorf("Command.Cluster: %w", err)
	}
	return nil
}
