// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
)

// Command is how to run the plugin so that it obtains a credential.
type Command struct {
	// Path is the program: a path, or a name to be found in PATH.
	Path string

	// Args are its arguments, without the program's name.
	Args []string

	// Env are variables, as "name=value", added to those of the test.
	Env []string

	// Cluster is the cluster that the credential is asked for. Default: one at
	// https://plugintest.invalid:6443, without a config.
	Cluster *plugin.Cluster

	// Secrets are what must never be on standard error or in the help, such as
	// the plugin's own keys. What the plugin answers need not be listed.
	Secrets []string

	// Timeout is how long one run may take. Default: 30 s.
	Timeout time.Duration

	// Stall, where it is set, is called once per signal. It changes the command,
	// which is a copy, so that the plugin waits for something that does not come,
	// such as a server that does not answer. What it returns is closed once the
	// plugin waits. Without Stall, the signals are sent to a plugin that has just
	// been started, and one that does not heed them may go unnoticed.
	Stall func(command *Command) (waiting <-chan struct{})
}

// Fault is what is wrong with a plugin.
type Fault struct {
	// Check is what was checked, a sentence.
	Check string

	// Err says what was found instead. It shows no credential.
	Err error
}

// String joins both.
func (f Fault) String() string { return f.Check + ": " + f.Err.Error() }

// Run runs the suite, with a subtest for each check.
func Run(t *testing.T, command Command) {
	t.Helper()
	s := newSuite(command)
	for _, check := range checks() {
		t.Run(check.name, func(t *testing.T) {
			if err := check.run(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
	}
}

// Check runs the suite and returns the faults. It returns early when the context
// ends, with a fault that says so.
func Check(ctx context.Context, command Command) []Fault {
	s := newSuite(command)
	var faults []Fault
	for _, check := range checks() {
		err := check.run(ctx, s)
		if ctx.Err() != nil {
			return append(faults, Fault{Check: check.name, Err: fmt.Errorf("not finished: %w", context.Cause(ctx))})
		}
		if err != nil {
			faults = append(faults, Fault{Check: check.name, Err: err})
		}
	}
	return faults
}
