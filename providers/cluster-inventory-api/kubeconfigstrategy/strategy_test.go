// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfigstrategy_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	credentialskubeconfig "github.com/rollcall-dev/rollcall/pkg/credentials/kubeconfig"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/providers/cluster-inventory-api/kubeconfigstrategy"
)

const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"x",
"clusters":[{"name":"c","cluster":{"server":"https://eu.example"%s}}],
"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],
"users":[{"name":"u","user":{%s}}]}`

func TestSecretStrategy(t *testing.T) {
	for _, tc := range []struct {
		name    string
		secrets []*corev1.Secret
		want    string // of the error; "" means success
	}{
		{name: "one with a token", secrets: []*corev1.Secret{secret("a", "", `"token":"t0ken"`)}},
		{name: "none", want: "no Secret"},
		{
			name: "one for another consumer, one for another profile, one in another namespace",
			secrets: []*corev1.Secret{
				change(secret("a", "", ""), func(s *corev1.Secret) { s.Labels["x-k8s.io/cluster-inventory-consumer"] = "other" }),
				change(secret("b", "", ""), func(s *corev1.Secret) { s.Labels["x-k8s.io/cluster-profile"] = "us" }),
				change(secret("c", "", ""), func(s *corev1.Secret) { s.Namespace = "other" }),
			},
			want: "no Secret",
		},
		{name: "two", secrets: []*corev1.Secret{secret("a", "", ""), secret("b", "", "")}, want: "2 Secrets"},
		{
			name:    "one without the key",
			secrets: []*corev1.Secret{change(secret("a", "", ""), func(s *corev1.Secret) { s.Data = nil })},
			want:    `Secret fleet/a: has no key "Config"`,
		},
		{
			name:    "one with an invalid kubeconfig",
			secrets: []*corev1.Secret{change(secret("a", "", ""), func(s *corev1.Secret) { s.Data["Config"] = []byte("{t0ken") })},
			want:    "Secret fleet/a: is not valid YAML",
		},
		{
			name:    "one that runs a command",
			secrets: []*corev1.Secret{secret("a", "", `"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"/bin/sh","interactiveMode":"Never"}`)},
			want:    `Secret fleet/a: context "x": user "u": exec: running a command is not allowed`,
		},
		{name: "one that reads a token file", secrets: []*corev1.Secret{secret("a", "", `"tokenFile":"/etc/passwd"`)}, want: "not allowed"},
		{name: "one with an unsupported proxy", secrets: []*corev1.Secret{secret("a", `,"proxy-url":"ftp://me:t0ken@proxy"`, "")}, want: "is not an http, https or socks5 URL with a host"},
		{name: "one with an invalid proxy URL", secrets: []*corev1.Secret{secret("a", `,"proxy-url":"http://me:t0ken@proxy:port"`, "")}, want: "is not an http, https or socks5 URL with a host"},
		{name: "one whose server is not verified", secrets: []*corev1.Secret{secret("a", `,"insecure-skip-tls-verify":true`, "")}, want: "is not allowed"},
		{name: "one with auth-provider", secrets: []*corev1.Secret{secret("a", "", `"auth-provider":{"name":"oidc","config":{"id-token":"t0ken"}}`)}, want: "is not allowed"},
		{name: "one that reads a CA file", secrets: []*corev1.Secret{secret("a", `,"certificate-authority":"/etc/passwd"`, "")}, want: "not allowed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			strategy, err := kubeconfigstrategy.New(t.Context(), kubeconfigstrategy.Option{
				Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "me"},
			})
			g.Expect(err).NotTo(HaveOccurred())
			hub := fake.NewClientBuilder()
			for _, s := range tc.secrets {
				hub = hub.WithObjects(s)
			}
			config, err := strategy.GetKubeConfig(t.Context(), hub.Build(), profile())
			if tc.want != "" {
				g.Expect(err).To(MatchError(And(ContainSubstring("fleet/eu"), ContainSubstring(tc.want), Not(ContainSubstring("t0ken")))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Host).To(Equal("https://eu.example"))
			g.Expect(config.BearerToken).To(Equal("t0ken"))
			g.Expect(config.QPS).To(BeEquivalentTo(-1))
			g.Expect(strategy.CustomWatches()).To(HaveLen(1))
		})
	}
}

// What Options allow, a kubeconfig may do.
func TestAllowedKubeconfigs(t *testing.T) {
	dir := t.TempDir()
	file, command := filepath.Join(dir, "token"), filepath.Join(dir, "plugin")
	NewWithT(t).Expect(os.WriteFile(file, []byte("t0ken"), 0o600)).To(Succeed())
	NewWithT(t).Expect(os.WriteFile(command, []byte("#!/bin/sh\n"), 0o700)).To(Succeed())
	for _, tc := range []struct {
		name          string
		cluster, user string
		options       credentialskubeconfig.Options
		want          func(g *WithT, config *rest.Config)
	}{
		{
			"a token file", "", fmt.Sprintf(`"tokenFile":%q`, file),
			credentialskubeconfig.Options{AllowPaths: true},
			func(g *WithT, config *rest.Config) { g.Expect(config.BearerToken).To(Equal("t0ken")) },
		},
		{
			"an allowed command", "", fmt.Sprintf(`"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":%q,"args":["a"],"interactiveMode":"Never"}`, command),
			credentialskubeconfig.Options{Exec: credentials.Options{AllowedCommands: []credentials.AllowedCommand{{Command: command}}}},
			func(g *WithT, config *rest.Config) {
				g.Expect(config.ExecProvider.Command).To(Equal(command))
				g.Expect(config.ExecProvider.Args).To(Equal([]string{"a"}))
			},
		},
		{
			"a server that is not verified", `,"insecure-skip-tls-verify":true`, "",
			credentialskubeconfig.Options{AllowInsecureSkipTLSVerify: true},
			func(g *WithT, config *rest.Config) { g.Expect(config.Insecure).To(BeTrue()) },
		},
		{
			"a proxy, impersonation and another server name", `,"proxy-url":"http://proxy.example:3128","tls-server-name":"inner"`, `"username":"me","password":"t0ken","as":"other"`,
			credentialskubeconfig.Options{},
			func(g *WithT, config *rest.Config) {
				g.Expect(config.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "eu.example"}})).To(HaveField("Host", "proxy.example:3128"))
				g.Expect(config.ServerName).To(Equal("inner"))
				g.Expect(config.Impersonate.UserName).To(Equal("other"))
				g.Expect(config.Username + config.Password).To(Equal("met0ken"))
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			strategy, err := kubeconfigstrategy.New(ctx, kubeconfigstrategy.Option{
				Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "me", Kubeconfig: tc.options},
			})
			g.Expect(err).NotTo(HaveOccurred())
			config, err := strategy.GetKubeConfig(t.Context(), fake.NewClientBuilder().WithObjects(secret("a", tc.cluster, tc.user)).Build(), profile())
			g.Expect(err).NotTo(HaveOccurred())
			tc.want(g, config)
		})
	}
}

func TestSecretWatch(t *testing.T) {
	strategy, err := kubeconfigstrategy.New(t.Context(), kubeconfigstrategy.Option{
		Secret: &kubeconfigstrategy.SecretStrategyOption{ConsumerName: "me"},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	watch := strategy.CustomWatches()[0]
	secret := func(consumer, profile string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "any", Labels: map[string]string{
			"x-k8s.io/cluster-inventory-consumer": consumer, "x-k8s.io/cluster-profile": profile,
		}}}
	}
	for _, tc := range []struct {
		name     string
		old, new *corev1.Secret
		want     []string
	}{
		{"created", nil, secret("me", "eu"), []string{"fleet/eu"}},
		{"created for another consumer", nil, secret("other", "eu"), nil},
		{"created without a profile", nil, secret("me", ""), nil},
		{"no longer for this consumer", secret("me", "eu"), secret("other", "eu"), []string{"fleet/eu"}},
		{"for another profile", secret("me", "eu"), secret("me", "us"), []string{"fleet/eu", "fleet/us"}},
		{"deleted", secret("me", "eu"), nil, []string{"fleet/eu"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			switch {
			case tc.old == nil:
				watch.EventHandler.Create(t.Context(), event.CreateEvent{Object: tc.new}, queue)
			case tc.new == nil:
				watch.EventHandler.Delete(t.Context(), event.DeleteEvent{Object: tc.old}, queue)
			default:
				watch.EventHandler.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.new}, queue)
			}
			queue.ShutDown()
			var got []string
			for req, shutdown := queue.Get(); !shutdown; req, shutdown = queue.Get() {
				got = append(got, req.String())
			}
			NewWithT(t).Expect(got).To(Equal(tc.want))
		})
	}
}

func TestAccessProviderStrategy(t *testing.T) {
	for name, option := range map[string]func(*kubeconfigstrategy.AccessProviderOption) kubeconfigstrategy.Option{
		"by its name": func(o *kubeconfigstrategy.AccessProviderOption) kubeconfigstrategy.Option {
			return kubeconfigstrategy.Option{AccessProvider: o}
		},
		"by its former name": func(o *kubeconfigstrategy.AccessProviderOption) kubeconfigstrategy.Option {
			return kubeconfigstrategy.Option{CredentialsProvider: o}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			strategy, err := kubeconfigstrategy.New(ctx, option(&kubeconfigstrategy.AccessProviderOption{
				Provider: access.New([]access.Provider{{
					Name: "plugin",
					ExecConfig: &clientcmdapi.ExecConfig{
						APIVersion: "client.authentication.k8s.io/v1", Command: "/plugins/x", ProvideClusterInfo: true,
					},
					ProfileSourcedCLIArgsPolicy: access.ProfileSourcedCLIArgsPolicyAppend,
				}}),
			}))
			g.Expect(err).NotTo(HaveOccurred())
			p := profile()
			p.Status.AccessProviders = []inventory.AccessProvider{{Name: "plugin", Cluster: clientcmdv1.Cluster{
				Server: "https://eu.example",
				Extensions: []clientcmdv1.NamedExtension{{
					Name:      "clusterprofiles.multicluster.x-k8s.io/exec/additional-args",
					Extension: runtime.RawExtension{Raw: []byte(`["--cluster=eu"]`)},
				}},
			}}}
			config, err := strategy.GetKubeConfig(t.Context(), nil, p)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Host).To(Equal("https://eu.example"))
			g.Expect(config.ExecProvider.Command).To(Equal("/plugins/x"))
			g.Expect(config.ExecProvider.Args).To(Equal([]string{"--cluster=eu"}))
			g.Expect(strategy.CustomWatches()).To(BeEmpty())
		})
	}
}

// TestPluginFlags follows the advice of the errors, with the file of upstream's
// examples.
func TestPluginFlags(t *testing.T) {
	for _, command := range []string{"./bin/secretreader-plugin", "secretreader-plugin"} {
		t.Run(command, func(t *testing.T) {
			g := NewWithT(t)
			dir, err := filepath.EvalSymlinks(t.TempDir())
			g.Expect(err).NotTo(HaveOccurred())
			t.Chdir(dir)
			plugin := filepath.Join(dir, "bin", "secretreader-plugin")
			g.Expect(os.Mkdir("bin", 0o700)).To(Succeed())
			g.Expect(os.WriteFile(plugin, []byte("#!/bin/sh\n"), 0o700)).To(Succeed())
			g.Expect(os.WriteFile("file.json", fmt.Appendf(nil, `{"providers": [{"name": "plugin", "execConfig": {
				"apiVersion": "client.authentication.k8s.io/v1", "args": null, "command": %q, "env": null, "provideClusterInfo": true}}]}`, command), 0o600)).To(Succeed())
			option := &kubeconfigstrategy.AccessProviderOption{}
			option.Provider, err = access.NewFromFile("file.json")
			g.Expect(err).NotTo(HaveOccurred())

			_, err = kubeconfigstrategy.New(t.Context(), kubeconfigstrategy.Option{AccessProvider: option})
			g.Expect(err).To(MatchError(ContainSubstring("set --credential-plugin-dir")))

			flags := flag.NewFlagSet("", flag.ContinueOnError)
			option.AddFlags(flags)
			g.Expect(flags.Lookup("clusterprofile-provider-file")).To(BeNil(), "programs have it already")
			g.Expect(flags.Parse([]string{"--credential-plugin-dir=bin"})).To(Succeed())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			strategy, err := kubeconfigstrategy.New(ctx, kubeconfigstrategy.Option{AccessProvider: option})
			g.Expect(err).NotTo(HaveOccurred())
			p := profile()
			p.Status.AccessProviders = []inventory.AccessProvider{{Name: "plugin", Cluster: clientcmdv1.Cluster{Server: "https://eu.example"}}}
			config, err := strategy.GetKubeConfig(t.Context(), nil, p)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.ExecProvider.Command).To(Equal(plugin))
		})
	}
}

func TestInvalidOptions(t *testing.T) {
	g := NewWithT(t)
	_, err := kubeconfigstrategy.New(t.Context(), kubeconfigstrategy.Option{})
	g.Expect(err).To(MatchError(ContainSubstring("exactly one")))
	_, err = kubeconfigstrategy.New(t.Context(), kubeconfigstrategy.Option{Secret: &kubeconfigstrategy.SecretStrategyOption{}})
	g.Expect(err).To(MatchError(ContainSubstring("ConsumerName")))
	_, err = kubeconfigstrategy.New(t.Context(), kubeconfigstrategy.Option{Secret: &kubeconfigstrategy.SecretStrategyOption{
		ConsumerName: "me", Kubeconfig: credentialskubeconfig.Options{Exec: credentials.Options{ProviderFile: "x"}},
	}})
	g.Expect(err).To(MatchError(ContainSubstring("SecretStrategyOption.Kubeconfig")))
	_, err = kubeconfigstrategy.New(t.Context(), kubeconfigstrategy.Option{AccessProvider: &kubeconfigstrategy.AccessProviderOption{}})
	g.Expect(err).To(MatchError(ContainSubstring("Provider must be set")))
}

// secret returns a Secret for the consumer "me" and the profile "eu".
func secret(name, cluster, user string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, Labels: map[string]string{
			"x-k8s.io/cluster-inventory-consumer": "me", "x-k8s.io/cluster-profile": "eu",
		}},
		Data: map[string][]byte{"Config": fmt.Appendf(nil, kubeconfig, cluster, user)},
	}
}

func profile() *inventory.Profile {
	return &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "eu"}}
}

func change(s *corev1.Secret, f func(*corev1.Secret)) *corev1.Secret {
	f(s)
	return s
}
