// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

// noAware ignores clusters.
type noAware struct{}

func (noAware) Engage(context.Context, multicluster.ClusterName, cluster.Cluster) error { return nil }

func TestHubOutage(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault mctest.Fault
		log   string
	}{
		{"refuses", mctest.Refuse, "requests to the management cluster fail"},
		{"forbidden", mctest.Forbidden.On("secrets"), "not allowed to list and watch them"},
		{"unauthorized", mctest.Unauthorized, "does not accept the credentials"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			eu, us := mctest.New(t), mctest.New(t)
			e.create("eu", eu.Config())
			e.Works(t, "eu", eu)
			e.hub.Fault(test.fault)
			e.hub.CloseConnections()
			g.Eventually(func() int {
				return e.log.Count("Cannot read objects of the management cluster, keeping the clusters as they are", `"resource"="secrets" "namespace"="default"`, test.log)
			}).Should(Equal(1))
			e.Works(t, "eu", eu)
			e.hub.Clear()
			e.create("us", us.Config())
			e.Works(t, "us", us)
			g.Expect(e.log.Count("Objects of the management cluster can be read again")).To(Equal(1))
			g.Expect(e.Engagements("eu")).To(Equal(1))
		})
	}
}

// What a backup does not have is removed, although the watch would not show it.
func TestHubIsRestored(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	eu, us := mctest.New(t), mctest.New(t)
	e.create("eu", eu.Config())
	snapshot := e.hub.Snapshot()
	e.create("us", us.Config())
	e.Works(t, "eu", eu)
	e.Works(t, "us", us)
	e.hub.Restore(snapshot)
	g.Eventually(func() bool { return e.isGone("us") }).Should(BeTrue())
	e.Works(t, "eu", eu)
	g.Expect(e.Engagements("eu")).To(Equal(1))
}

// recordPaths records the requests that concern Secrets.
type recordPaths struct {
	mu    sync.Mutex
	paths []string
}

func (r *recordPaths) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.paths = append(r.paths, request.URL.Path+"?"+request.URL.Query().Get("labelSelector"))
		r.mu.Unlock()
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestOnlyLabelledSecretsAreRead(t *testing.T) {
	g := NewWithT(t)
	hub, member, recorded := mctest.New(t), mctest.New(t), &recordPaths{}
	config := hub.Config()
	config.Wrap(recorded.wrap)
	e := newEnv(t, func(o *kubeconfig.Options) { o.Hub = config })
	g.Expect(hub.Create(secret("eu", providertest.Kubeconfig(t, member.Config())))).To(Succeed())
	e.Works(t, "eu", member)
	g.Expect(e.hub.Requests("", "secrets")).To(BeZero(), "Options.Hub is the management cluster")
	recorded.mu.Lock()
	defer recorded.mu.Unlock()
	g.Expect(recorded.paths).NotTo(BeEmpty())
	for _, path := range recorded.paths {
		g.Expect(path).To(Equal("/api/v1/namespaces/default/secrets?sigs.k8s.io/multicluster-runtime-kubeconfig=true"))
	}
}

func TestProfile(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t, func(o *kubeconfig.Options) { o.Kubeconfig.AllowInsecureSkipTLSVerify = true })
	member := mctest.New(t)
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	cl, err := e.provider.Get(t.Context(), "eu")
	g.Expect(err).NotTo(HaveOccurred())
	profile, ok := fleet.ProfileFrom(cl)
	g.Expect(ok).To(BeTrue())
	g.Expect(inventory.Validate(profile)).To(Succeed())
	g.Expect(inventory.ClusterName(profile)).To(Equal("eu"))
	g.Expect(inventory.KeyOf(profile)).To(Equal(inventory.Key{Namespace: "default", Name: "eu"}))
	g.Expect(profile.Spec.ClusterManager.Name).To(Equal("kubeconfig"))
	g.Expect(profile.Labels).To(HaveKeyWithValue(kubeconfig.DefaultKubeconfigSecretLabel, "true"))
	providers := inventory.AccessProviders(profile)
	g.Expect(providers).To(HaveLen(1))
	g.Expect(providers[0].Cluster.Server).To(Equal(member.Config().Host))
	g.Expect(string(providers[0].Cluster.Extensions[0].Extension.Raw)).To(MatchJSON(`{"namespace":"default","name":"eu","key":"kubeconfig"}`))
	text, err := json.Marshal(profile)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).NotTo(ContainSubstring(member.AdminToken()))
}

func TestFilesAndCommandsFromSecrets(t *testing.T) {
	dir := t.TempDir()
	file, command := filepath.Join(dir, "token"), filepath.Join(dir, "plugin")
	write := func(path string, mode os.FileMode, content string) {
		t.Helper()
		next := path + ".next"
		if err := os.WriteFile(next, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, path); err != nil {
			t.Fatal(err)
		}
	}
	e := newEnv(t, func(o *kubeconfig.Options) {
		o.Kubeconfig.AllowPaths = true
		o.Kubeconfig.Exec.AllowedCommands = []credentials.AllowedCommand{{Command: command}}
	})
	g := NewWithT(t)
	eu, us := mctest.New(t), mctest.New(t)
	eu.AddToken("one", "controller")
	us.AddToken("of-the-plugin", "controller")
	write(file, 0o600, "one\n")
	write(command, 0o700, "#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"of-the-plugin\"}}'\n")
	create := func(name string, config *rest.Config, user *clientcmdapi.AuthInfo) {
		t.Helper()
		kc := providertest.Config(config)
		kc.AuthInfos["main"] = user
		g.Expect(e.hub.Create(secret(name, providertest.Encode(t, kc)))).To(Succeed())
	}
	create("eu", eu.Config(), &clientcmdapi.AuthInfo{TokenFile: file})
	create("us", us.Config(), &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: command, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}})
	e.Works(t, "eu", eu)
	e.Works(t, "us", us)
	before := e.lists.Count()
	g.Expect(before).To(BeNumerically(">", 0))

	eu.AddToken("two", "controller")
	write(file, 0o600, "two\n")
	providertest.Await(t, "the token of the file is used", func() bool { return tokenOf(e.provider) == "two" })
	eu.RevokeToken("one")
	e.Works(t, "eu", eu)
	g.Expect(e.Engagements("eu")).To(Equal(1))
	g.Expect(e.lists.Count()).To(Equal(before))
	g.Expect(os.Remove(file)).To(Succeed())
	providertest.AwaitStatus(t, e.provider, "eu", fleet.Ready, fleet.AccessUpdateFailed, "tokenFile")
	e.Works(t, "eu", eu)
	g.Expect(e.log.Count("of-the-plugin") + strings.Count(e.provider.Status()[0].LastError, "two")).To(BeZero())
}
