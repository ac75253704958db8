// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
	"github.com/rollcall-dev/rollcall/providers/kubeconfig"
)

func clientKey(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

func TestClustersComeAndGo(t *testing.T) {
	for _, test := range []struct {
		name string
		gone func(e *env)
	}{
		{"the Secret is deleted", func(e *env) {
			if err := e.hub.Delete(secret("eu", nil)); err != nil {
				e.t.Fatal(err)
			}
		}},
		{"the label is removed", func(e *env) { e.update("eu", func(s *corev1.Secret) { s.Labels = nil }) }},
		{"the label has another value", func(e *env) {
			e.update("eu", func(s *corev1.Secret) { s.Labels[kubeconfig.DefaultKubeconfigSecretLabel] = "false" })
		}},
		{"the key is removed", func(e *env) { e.update("eu", func(s *corev1.Secret) { s.Data = nil }) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			eu, us := mctest.New(t), mctest.New(t)
			unlabelled, elsewhere := secret("unlabelled", providertest.Kubeconfig(t, us.Config())), secret("elsewhere", providertest.Kubeconfig(t, us.Config()))
			unlabelled.Labels, elsewhere.Namespace = nil, "kube-public"
			g.Expect(e.hub.Create(unlabelled, elsewhere)).To(Succeed())
			e.create("eu", eu.Config())
			e.create("us", us.Config())
			e.Works(t, "eu", eu)
			e.Works(t, "us", us)
			g.Expect(e.provider.ListClusters()).To(ConsistOf(multicluster.ClusterName("eu"), multicluster.ClusterName("us")))
			test.gone(e)
			g.Eventually(func() bool { return e.isGone("eu") }).Should(BeTrue())
			g.Eventually(eu.Connections).Should(BeZero())
			_, err := e.provider.Get(t.Context(), "eu")
			g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))
			e.Works(t, "us", us)
			g.Expect(e.Engagements("us")).To(Equal(1))

			e.stop()
			g.Eventually(e.hub.Connections).Should(BeZero(), "nothing is left in the management cluster")
			g.Eventually(us.Connections).Should(BeZero())
			g.Expect(e.provider.Status()).To(BeEmpty())
		})
	}
}

func TestWaysToStart(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(t *testing.T, e *env, ctx context.Context) (wait func())
	}{
		{"by the manager alone", func(*testing.T, *env, context.Context) func() { return nil }},
		{"with SetupWithManager before", func(t *testing.T, e *env, ctx context.Context) func() {
			for range 2 {
				NewWithT(t).Expect(e.provider.SetupWithManager(ctx, e.mgr)).To(Succeed())
			}
			return nil
		}},
		{"with Run", func(t *testing.T, e *env, ctx context.Context) func() {
			ended := make(chan error, 1)
			go func() { ended <- e.provider.Run(ctx, e.mgr) }()
			return func() { NewWithT(t).Expect(<-ended).To(Succeed()) }
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := &env{t: t, hub: mctest.New(t), provider: kubeconfig.New(kubeconfig.Options{Namespace: "default", Connection: providertest.Quick()})}
			e.newManager()
			ctx, cancel := context.WithCancel(t.Context())
			wait := test.set(t, e, ctx)
			stop := mctest.StartManager(t, e.mgr)
			member := mctest.New(t)
			e.create("eu", member.Config())
			e.Works(t, "eu", member)
			g.Expect(e.provider.SetupWithManager(ctx, e.mgr)).To(Succeed(), "after the start")
			result, err := e.provider.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "eu"}})
			g.Expect(result, err).To(BeZero())
			_, err = e.provider.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "unknown"}})
			g.Expect(err).NotTo(HaveOccurred())
			e.Works(t, "eu", member)
			g.Expect(e.Engagements("eu")).To(Equal(1))
			cancel()
			if wait != nil {
				wait()
			}
			stop()
		})
	}
}

func TestSeveralProviders(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	other := kubeconfig.New(kubeconfig.Options{
		Namespace: "kube-public", KubeconfigSecretLabel: "example.com/other", KubeconfigSecretKey: "config", Connection: providertest.Quick(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- other.Run(ctx, e.mgr) }() // not the manager's provider
	eu, us := mctest.New(t), mctest.New(t)
	e.create("eu", eu.Config())
	s := secret("us", nil)
	s.Namespace, s.Labels = "kube-public", map[string]string{"example.com/other": "true"}
	s.Data = map[string][]byte{"config": providertest.Kubeconfig(t, us.Config())}
	g.Expect(e.hub.Create(s)).To(Succeed())
	providertest.AwaitReady(t, e.provider, "eu")
	providertest.AwaitReady(t, other, "us")
	g.Expect(e.Engagements("us")).To(Equal(1))
	g.Expect(e.provider.Status()).To(HaveLen(1))
	g.Expect(other.Status()).To(HaveLen(1))
	cancel()
	g.Expect(<-ended).To(Succeed())
	e.Works(t, "eu", eu)
}

func TestRestart(t *testing.T) {
	e := newEnv(t)
	member := mctest.New(t)
	e.create("eu", member.Config())
	e.Works(t, "eu", member)
	e.stop()
	e.provider = kubeconfig.New(kubeconfig.Options{Namespace: "default", Connection: providertest.Quick()})
	e.newManager()
	defer mctest.StartManager(t, e.mgr)()
	providertest.Await(t, "the ConfigMap is reconciled again", func() bool { return e.Reconciled("eu", "object-1") })
}

func TestInvalidOptions(t *testing.T) {
	g := NewWithT(t)
	mgr, err := mcmanager.New(mctest.New(t).Config(), nil, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	p := kubeconfig.New(kubeconfig.Options{KubeconfigSecretLabel: "a b"})
	want := MatchError(HavePrefix(`kubeconfig provider: invalid KubeconfigSecretLabel "a b": `))
	g.Expect(p.SetupWithManager(t.Context(), mgr)).To(want)
	g.Expect(p.Start(t.Context(), mgr)).To(want)
	_, err = p.Get(t.Context(), "x")
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))

	g.Expect(kubeconfig.New(kubeconfig.Options{}).Start(t.Context(), noAware{})).To(
		MatchError("kubeconfig provider: no management cluster: set Options.Hub or call SetupWithManager"))
	g.Expect(kubeconfig.New(kubeconfig.Options{}).SetupWithManager(t.Context(), nil)).To(MatchError(ContainSubstring("must not be nil")))
}

// A token is replaced as every 15 minutes for a week.
func TestWeekOfRotations(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	const rotations = 7 * 24 * 4
	token := func(i int) string { return fmt.Sprintf("token-%d", i) }
	member.AddToken(token(0), "controller")
	e.create("eu", member.ConfigFor(token(0)))
	e.Works(t, "eu", member)
	before := e.lists.Count()
	g.Expect(before).To(BeNumerically(">", 0))
	var created []string
	var durations []time.Duration
	for i := 1; i <= rotations; i++ {
		member.AddToken(token(i), "controller")
		start := time.Now()
		e.set("eu", providertest.Kubeconfig(t, member.ConfigFor(token(i))))
		created = append(created, e.Create(t, member))
		providertest.Await(t, "the new token is used", func() bool { return tokenOf(e.provider) == token(i) })
		durations = append(durations, time.Since(start))
		member.RevokeToken(token(i - 1))
	}
	for _, name := range created {
		g.Eventually(func() bool { return e.Reconciled("eu", name) }).Should(BeTrue(), name)
	}
	g.Expect(e.lists.Count()).To(Equal(before), "nothing is listed again")
	g.Expect(e.Engagements("eu")).To(Equal(1))
	slices.Sort(durations)
	median, longest := durations[len(durations)/2], durations[len(durations)-1]
	g.Expect(median).To(BeNumerically("<", time.Second))
	g.Expect(longest).To(BeNumerically("<", 10*time.Second), "on a busy machine")
	t.Logf("%d rotations, in use after %s, at the latest after %s", rotations, median, longest)
	providertest.AwaitReady(t, e.provider, "eu")
}

// tokenOf returns the token that the cluster eu is connected with.
func tokenOf(p *kubeconfig.Provider) string {
	cl, err := p.Get(context.Background(), "eu")
	if err != nil {
		return ""
	}
	return cl.GetConfig().BearerToken
}

func TestEndpointChanges(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*mctest.Cluster)
	}{
		{"another address", (*mctest.Cluster).Move},
		{"another CA", func(c *mctest.Cluster) {
			c.RotateCA()
			c.CloseConnections()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			member := mctest.New(t)
			e.create("eu", member.Config())
			e.Works(t, "eu", member)
			before := e.lists.Count()
			g.Expect(before).To(BeNumerically(">", 0))
			test.change(member)
			e.set("eu", providertest.Kubeconfig(t, member.Config()))
			e.Works(t, "eu", member)
			g.Expect(e.Engagements("eu")).To(Equal(1))
			g.Expect(e.lists.Count()).To(Equal(before))
		})
	}
}

func TestBrokenUpdateKeepsCluster(t *testing.T) {
	dead := mctest.New(t)
	dead.Fault(mctest.Refuse)
	user := func(user *clientcmdapi.AuthInfo) func(*mctest.Cluster) *clientcmdapi.Config {
		return func(c *mctest.Cluster) *clientcmdapi.Config {
			config := providertest.Config(c.Config())
			config.AuthInfos["main"] = user
			return config
		}
	}
	for _, test := range []struct {
		name   string
		broken func(c *mctest.Cluster) *clientcmdapi.Config
		text   string // replaces it
		want   string
	}{
		{"no YAML", nil, "a: [s3cr3t", "Secret default/eu: is not valid YAML"},
		{"nothing", nil, " ", "Secret default/eu: is empty"},
		{"no current context", func(c *mctest.Cluster) *clientcmdapi.Config {
			config := providertest.Config(c.Config())
			config.CurrentContext = ""
			return config
		}, "", "Secret default/eu: current-context: must be set"},
		{"a command", user(&clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "/bin/sh", Args: []string{"s3cr3t"}}}), "", `Secret default/eu: context "main": user "main": exec: running a command is not allowed`},
		{"a file", user(&clientcmdapi.AuthInfo{TokenFile: "/etc/hostname"}), "", `user "main": tokenFile: a path is not allowed`},
		{"a CA with a private key", func(c *mctest.Cluster) *clientcmdapi.Config {
			config := providertest.Config(c.Config())
			_, key := c.ClientCertificate("a")
			config.Clusters["main"].CertificateAuthorityData = append(config.Clusters["main"].CertificateAuthorityData, key...)
			return config
		}, "", "must not contain a private key"},
		{"an unreachable server", func(*mctest.Cluster) *clientcmdapi.Config { return providertest.Config(dead.Config()) }, "", "refused"},
		{"a revoked token", user(&clientcmdapi.AuthInfo{Token: "s3cr3t"}), "", "401"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			member := mctest.New(t)
			e.create("eu", member.Config())
			e.Works(t, "eu", member)
			before := e.lists.Count()
			g.Expect(before).To(BeNumerically(">", 0))
			if test.broken != nil {
				e.set("eu", providertest.Encode(t, test.broken(member)))
			} else {
				e.set("eu", []byte(test.text))
			}
			providertest.AwaitStatus(t, e.provider, "eu", fleet.Ready, fleet.AccessUpdateFailed, test.want)
			g.Eventually(func() int {
				return e.log.Count(`"Cannot use the cluster's new access, keeping the current connection"`, `"eu"`)
			}).ShouldNot(BeZero())
			providertest.AwaitBroken(t, 1, 0)
			e.Works(t, "eu", member)
			g.Expect(e.log.Count("s3cr3t")).To(BeZero())

			e.set("eu", providertest.Kubeconfig(t, member.Config()))
			providertest.AwaitReady(t, e.provider, "eu")
			providertest.AwaitBroken(t, 0, 0)
			e.Works(t, "eu", member)
			g.Expect(e.Engagements("eu")).To(Equal(1))
			g.Expect(e.lists.Count()).To(Equal(before))
		})
	}
}

func TestBrokenFromTheStart(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	good, later := mctest.New(t), mctest.New(t)
	g.Expect(e.hub.Create(secret("bad", []byte("a: [")))).To(Succeed())
	e.create("good", good.Config())
	providertest.AwaitStatus(t, e.provider, "bad", fleet.Backoff, fleet.ResolveFailed, "Secret default/bad: is not valid YAML")
	providertest.AwaitBroken(t, 0, 1)
	g.Expect(e.log.Count(`"bad"`, "Secret default/bad: is not valid YAML")).NotTo(BeZero())
	e.Works(t, "good", good)
	e.set("bad", providertest.Kubeconfig(t, later.Config()))
	e.Works(t, "bad", later)
}
