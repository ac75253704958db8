// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/credentials/providerfile"
)

// kubeconfigOf returns what client-go makes of a kubeconfig with the same plugin
// and the same server.
func kubeconfigOf(t *testing.T, s *server, provider *providerfile.Provider, config string) *rest.Config {
	t.Helper()
	exec := map[string]any{
		"apiVersion": provider.ExecConfig.APIVersion, "command": provider.ExecConfig.Command, "args": provider.ExecConfig.Args,
		"env": provider.ExecConfig.Env, "installHint": provider.ExecConfig.InstallHint,
		"provideClusterInfo": provider.ExecConfig.ProvideClusterInfo, "interactiveMode": "Never",
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"contexts": []any{map[string]any{"name": "x", "context": map[string]any{"cluster": "c", "user": "u"}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"exec": exec}}},
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{
			"server": s.URL, "certificate-authority-data": s.ca(),
			"extensions": []any{map[string]any{"name": configExtension, "extension": json.RawMessage(config)}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// getOnce returns the status or the error of a request.
func getOnce(t *testing.T, config *rest.Config, url string) (status int, text string) {
	t.Helper()
	client := httpClient(t, config)
	defer client.CloseIdleConnections()
	status, _, err := get(client, url)
	if err != nil {
		return 0, err.Error()
	}
	return status, ""
}

// TestPortableConfigIsClientGos compares a portable configuration with that of a
// kubeconfig: all that the plugin gets, and all that the user sees.
func TestPortableConfigIsClientGos(t *testing.T) {
	v1, v1beta1 := "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
	for _, test := range []struct {
		name    string
		prepare func(*fakePlugin, *providerfile.Provider)
		runs    bool   // the plugin
		failure string // part of client-go's error
		managed error  // of the managed configuration
	}{
		{"v1", func(*fakePlugin, *providerfile.Provider) {}, true, "", nil},
		{"v1beta1", func(p *fakePlugin, provider *providerfile.Provider) {
			p.set("output", execCredential(v1beta1, map[string]string{"token": "t1"}))
			provider.ExecConfig.APIVersion = v1beta1
		}, true, "", nil},
		{"without cluster information", func(_ *fakePlugin, provider *providerfile.Provider) {
			provider.ExecConfig.ProvideClusterInfo = false
		}, true, "", nil},
		{"a plugin that is missing", func(_ *fakePlugin, provider *providerfile.Provider) {
			provider.ExecConfig.Command = filepath.Join(filepath.Dir(provider.ExecConfig.Command), "missing")
		}, false, "missing: no such file or directory", credentials.ErrPluginMissing},
		{"a plugin that fails", func(p *fakePlugin, _ *providerfile.Provider) { p.set("code", "7") }, true, "exit code 7", credentials.ErrPluginFailed},
		{"output that is not JSON", func(p *fakePlugin, _ *providerfile.Provider) { p.set("output", "t1") }, true, "decoding stdout", credentials.ErrInvalidOutput},
		{"v1beta1 in response to v1", func(p *fakePlugin, _ *providerfile.Provider) {
			p.set("output", execCredential(v1beta1, map[string]string{"token": "t1"}))
		}, true, "plugin returned version " + v1beta1, nil},
		{"v1 in response to v1beta1", func(_ *fakePlugin, provider *providerfile.Provider) {
			provider.ExecConfig.APIVersion = v1beta1
		}, true, "plugin returned version " + v1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			plugin, server := newFakePlugin(t), newServer(t, "Bearer t1")
			plugin.set("output", execCredential(v1, map[string]string{"token": "t1"}))
			provider := plugin.provider()
			provider.ExecConfig.ProvideClusterInfo, provider.ExecConfig.InstallHint = true, "ask the platform team"
			test.prepare(plugin, &provider)
			config := `{"clusterName":"c9","n":1.5}`
			access := resolve(t, newResolver(t, credentials.Options{Providers: []providerfile.Provider{provider}}),
				server.profile("c1", extension(configExtension, config)))
			portable := access.PortableRESTConfig()
			reference := kubeconfigOf(t, server, &provider, config)
			g.Expect(portable.ExecProvider.InteractiveMode).To(Equal(reference.ExecProvider.InteractiveMode))
			g.Expect(portable.ExecProvider.InstallHint).To(Equal(reference.ExecProvider.InstallHint))

			status, text := getOnce(t, portable, server.URL)
			wantStatus, want := getOnce(t, reference, server.URL)
			g.Expect(text).To(Equal(want), "the error, to the byte")
			g.Expect(status).To(Equal(wantStatus))
			g.Expect(text).To(ContainSubstring(test.failure))
			if test.runs {
				runs := plugin.runs()
				g.Expect(runs).To(HaveLen(2))
				for i := range runs {
					slices.Sort(runs[i].Env)
					runs[i].PID = 0
				}
				g.Expect(runs[0]).To(Equal(runs[1]), "arguments, environment and KUBERNETES_EXEC_INFO")
			}

			_, _, err := get(httpClient(t, access.RESTConfig()), server.URL)
			if test.managed != nil {
				g.Expect(err).To(MatchError(test.managed))
				return
			}
			g.Expect(err).NotTo(HaveOccurred(), "the managed configuration accepts both versions")
		})
	}
}
