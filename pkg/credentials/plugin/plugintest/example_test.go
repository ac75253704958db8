// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest_test

import (
	"encoding/json"
	"testing"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/plugintest"
)

// A test of a plugin's binary. The config is one for which the plugin obtains a
// credential.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T)
		plugintest.Run(t, plugintest.Command{
			Path: "bin/mc-credential-files",
			Args: []string{"--dir=testdata/tokens"},
			Cluster: &plugin.Cluster{
				Server: "https://c1.example.com:6443",
				Config: json.RawMessage(`{"file":"c1"}`),
			},
		})
	}
}
