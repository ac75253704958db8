// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package tokensecret_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin"
	"github.com/rollcall-dev/rollcall/pkg/credentials/plugin/plugintest"
	tokensecret "github.com/rollcall-dev/rollcall/plugins/token-secret"
)

// If this variable is set, the test binary is the plugin.
const programVariable = "ROLLCALL_TOKEN_SECRET"

func init() {
	if os.Getenv(programVariable) != "" {
		plugin.Main(tokensecret.New())
	}
}

func TestConformance(t *testing.T) {
	hub := newHub(t, secret("clusters", "c1", map[string]string{"token": "secret-1\n"}))
	plugintest.Run(t, plugintest.Command{
		Path:    os.Args[0],
		Args:    []string{"--any-server", "--kubeconfig=" + hub},
		Env:     []string{programVariable + "=1", "GORACE=atexit_sleep_ms=0"},
		Cluster: &plugin.Cluster{Server: "https://c1:6443", Config: json.RawMessage(`{"clusterName":"c1"}`)},
		Secrets: []string{"hub-token"},
		Stall: func(command *plugintest.Command) <-chan struct{} {
			kubeconfig, waiting := newSilentHub(t)
			command.Args = []string{"--kubeconfig=" + kubeconfig}
			return waiting
		},
	})
}

// newSilentHub returns a kubeconfig for a hub that does not respond, and a
// channel that is closed by the first request.
func newSilentHub(t *testing.T) (kubeconfig string, waiting <-chan struct{}) {
	t.Helper()
	received := make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		once.Do(func() { close(received) })
		<-request.Context().Done()
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: server.URL}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "hub-token"}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "me", Namespace: "clusters"}
	config.CurrentContext = "hub"
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, received
}
