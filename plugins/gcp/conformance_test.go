// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package gcp_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/plugintest"
)

func TestConformance(t *testing.T) {
	for _, test := range []struct {
		name string
		file func(*cloud) map[string]any
	}{
		{name: "metadata server"},
		{name: "service account key", file: (*cloud).serviceAccountKey},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCloud(t)
			if test.file != nil {
				c.use(test.file(c))
			}
			command := plugintest.Command{
				Path: os.Args[0],
				Args: []string{"--allowed-service-account=" + viewer, "--iam-credentials-url=" + c.URL},
				Env:  []string{programVariable + "=1", "GORACE=atexit_sleep_ms=0"},
				Cluster: &plugin.Cluster{
					Server: "https://34.1.2.3",
					Config: json.RawMessage(choosing(viewer)),
				},
				Secrets: []string{"key-token", "metadata-default"},
			}
			command.Stall = func(command *plugintest.Command) <-chan struct{} {
				silent := newCloud(t)
				waiting := silent.fallSilent()
				command.Env = append(command.Env, "GOOGLE_APPLICATION_CREDENTIALS=", "GCE_METADATA_HOST="+silent.Listener.Addr().String())
				return waiting
			}
			plugintest.Run(t, command)
		})
	}
}
