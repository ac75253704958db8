// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package oidc_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/plugintest"
	"github.com/rollcall-dev/rollcall/plugins/oidc"
)

// If this variable is set, the test binary is the plugin.
const programVariable = "ROLLCALL_OIDC"

func init() {
	if os.Getenv(programVariable) != "" {
		plugin.Main(oidc.New())
	}
}

func TestConformance(t *testing.T) {
	plugintest.Run(t, plugintest.Command{
		Path:    os.Args[0],
		Args:    []string{"--kubeconfig=" + newHub(t).kubeconfig(t, ownToken)},
		Env:     []string{programVariable + "=1", "GORACE=atexit_sleep_ms=0"},
		Cluster: &plugin.Cluster{Server: memberURL, Config: json.RawMessage(`{"audience":"` + memberURL + `"}`)},
		Secrets: []string{ownToken},
		Stall: func(command *plugintest.Command) <-chan struct{} {
			received := make(chan struct{})
			var once sync.Once
			silent := newHub(t)
			silent.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
				_, _ = io.Copy(io.Discard, request.Body) // only then does the server notice the end of the connection
				once.Do(func() { close(received) })
				<-request.Context().Done()
			})
			command.Args = []string{"--kubeconfig=" + silent.kubeconfig(t, ownToken)}
			return received
		},
	})
}
