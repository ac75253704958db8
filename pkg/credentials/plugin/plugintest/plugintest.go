// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"encoding/json"
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
	if _, err := json.Marshal(command.Cluster); err != nil {
		t.Fatalf("Command.Cluster: %v", err)
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
