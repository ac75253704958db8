// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package clusterapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/inventory"
	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	clusterapi "github.com/rollcall-dev/rollcall/providers/cluster-api"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
)

// noAware ignores clusters.
type noAware struct{}

func (noAware) Engage(context.Context, multicluster.ClusterName, cluster.Cluster) error { return nil }

func TestHubOutage(t *testing.T) {
	const cannot, again = "Cannot read objects of the management cluster, keeping the clusters as they are", "Objects of the management cluster can be read again"
	for _, test := range []struct {
		name, log string
		fault     mctest.Fault
		lines     int
	}{
		{"refuses", "requests to the management cluster fail", mctest.Refuse, 2},
		{"Secrets are forbidden", "not allowed to list and watch them", mctest.Forbidden.On("secrets"), 1},
		{"Clusters are forbidden", "not allowed to list and watch them", mctest.Forbidden.On("clusters"), 1},
		{"unauthorized", "does not accept the credentials", mctest.Unauthorized, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := newEnv(t)
			first, second := mctest.New(t), mctest.New(t)
			e.create("default", "eu", first.Config())
			e.Works(t, eu, first)
			e.hub.Fault(test.fault)
			e.hub.CloseConnections()
			g.Eventually(func() int { return e.log.Count(cannot, test.log) }).Should(Equal(test.lines))
			e.Works(t, eu, first)
			e.create("default", "us", second.Config())
			e.hub.Clear()
			e.Works(t, "default/us", second)
			g.Expect(e.log.Count(again)).To(Equal(test.lines))
			g.Expect(e.Engagements(eu)).To(Equal(1))
		})
	}
}

func TestStartInAnOutage(t *testing.T) {
	for _, resource := range []string{"secrets", "clusters"} {
		t.Run(resource, func(t *testing.T) {
			g := NewWithT(t)
			hub, member := newHub(t), mctest.New(t)
			hub.Fault(mctest.Forbidden.On(resource))
			e := startEnv(t, hub)
			e.create("default", "eu", member.Config())
			g.Eventually(func() int { return e.log.Count("Cannot read objects of the management cluster", resource[:7]) }).Should(Equal(1))
			g.Expect(e.provider.Status()).To(BeEmpty(), "a cluster is not sent without its Secret")
			_, err := e.provider.Get(t.Context(), eu)
			g.Expect(err).To(MatchError(multicluster.ErrClusterNotReady), "the inventory is not known")
			hub.Clear()
			e.Works(t, eu, member)
			g.Expect(e.log.Count("Cannot use the cluster's")).To(BeZero())
		})
	}
}

func TestDefinitionInstalledLater(t *testing.T) {
	g := NewWithT(t)
	hub, member := mctest.New(t), mctest.New(t)
	e := startEnv(t, hub)
	g.Eventually(func() int { return e.log.Count("its CustomResourceDefinition may be missing") }).Should(Equal(1))
	g.Expect(hub.Create(crd("v1beta2"))).To(Succeed())
	e.create("default", "eu", member.Config())
	e.Works(t, eu, member)
}

func TestHubIsRestored(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	first, second := mctest.New(t), mctest.New(t)
	e.create("default", "eu", first.Config())
	snapshot := e.hub.Snapshot()
	e.create("default", "us", second.Config())
	e.Works(t, eu, first)
	e.Works(t, "default/us", second)
	e.hub.Restore(snapshot)
	g.Eventually(func() bool { return e.isGone("default/us") }).Should(BeTrue())
	e.Works(t, eu, first)
	g.Expect(e.Engagements(eu)).To(Equal(1))
}

func TestServedVersionsChange(t *testing.T) {
	g := NewWithT(t)
	hub, member := mctest.New(t), mctest.New(t)
	g.Expect(hub.Create(crd("v1beta1"))).To(Succeed())
	e := startEnv(t, hub)
	e.must(hub.Create(object("v1beta1", "default", "eu"), secret("default", "eu", providertest.Kubeconfig(t, member.Config()))))
	e.status("v1beta1", "eu", "default", initialized())
	e.Works(t, eu, member)
	for _, step := range []struct {
		served []string
		read   string
	}{
		{[]string{"v1beta1", "v1beta2"}, "v1beta2"},
		{[]string{"v1beta2"}, "v1beta2"},
		{[]string{"v1beta1"}, "v1beta1"},
	} {
		definition := crd()
		g.Expect(hub.Get(clientKey(definition), definition)).To(Succeed())
		definition.Spec = crd(step.served...).Spec
		g.Expect(hub.Update(definition)).To(Succeed())
		hub.CloseConnections()
		name := multicluster.ClusterName("default/with-" + step.read + step.served[0])
		other := mctest.New(t)
		short := string(name[len("default/"):])
		e.must(hub.Create(object(step.read, "default", short), secret("default", short, providertest.Kubeconfig(t, other.Config()))))
		e.status(step.read, short, "default", initialized())
		e.Works(t, name, other)
		e.Works(t, eu, member)
	}
	g.Expect(e.Engagements(eu)).To(Equal(1))
}

// recordPaths records requests.
type recordPaths struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (r *recordPaths) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.paths[request.Method+" "+request.URL.Path+"?"+request.URL.Query().Get("labelSelector")] = true
		r.mu.Unlock()
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestOnlyWhatIsNeededIsRead(t *testing.T) {
	for _, test := range []struct{ namespace, clusters, secrets string }{
		{"", "/apis/cluster.x-k8s.io/v1beta2/clusters?", "/api/v1/secrets?"},
		{"default", "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters?", "/api/v1/namespaces/default/secrets?"},
	} {
		t.Run("namespace "+test.namespace, func(t *testing.T) {
			g := NewWithT(t)
			hub, member, recorded := newHub(t), mctest.New(t), &recordPaths{paths: map[string]bool{}}
			config := hub.Config()
			config.Wrap(recorded.wrap)
			e := newEnv(t, func(o *clusterapi.Options) { o.Hub, o.Namespace = config, test.namespace })
			at := &env{t: t, hub: hub}
			at.create("default", "eu", member.Config())
			at.create("kube-public", "eu", member.Config())
			e.Works(t, eu, member)
			g.Expect(e.hub.Requests("", "secrets")).To(BeZero(), "Options.Hub is the management cluster")
			g.Expect(e.isGone("kube-public/eu")).To(Equal(test.namespace != ""))
			recorded.mu.Lock()
			defer recorded.mu.Unlock()
			g.Expect(recorded.paths).To(HaveLen(2))
			g.Expect(recorded.paths).To(HaveKey("GET " + test.clusters))
			g.Expect(recorded.paths).To(HaveKey("GET " + test.secrets + "cluster.x-k8s.io/cluster-name"))
		})
	}
}

func TestProfile(t *testing.T) {
	g := NewWithT(t)
	e := newEnv(t)
	member := mctest.New(t)
	e.create("default", "eu", member.Config())
	e.update(func(u *unstructuredObject) {
		u.Object["spec"] = map[string]any{"topology": map[string]any{"version": "v1.35.0"}}
	})
	e.status("v1beta2", "eu", "default", initialized(condition("ControlPlaneAvailable", "True", "Available")))
	e.Works(t, eu, member)
	profile := func() *inventory.Profile {
		cl, err := e.provider.Get(t.Context(), eu)
		g.Expect(err).NotTo(HaveOccurred())
		profile, ok := fleet.ProfileFrom(cl)
		g.Expect(ok).To(BeTrue())
		return profile
	}
	g.Eventually(func() string { return profile().Status.Version.Kubernetes }).Should(Equal("v1.35.0"))
	p := profile()
	g.Expect(inventory.Validate(p)).To(Succeed())
	g.Expect(inventory.ClusterName(p)).To(Equal("default/eu"))
	g.Expect(inventory.KeyOf(p)).To(Equal(inventory.Key{Namespace: "default", Name: "eu"}))
	g.Expect(p.Spec.ClusterManager.Name).To(Equal("cluster-api"))
	g.Expect(p.Labels).To(HaveKeyWithValue("env", "test"))
	providers := inventory.AccessProviders(p)
	g.Expect(providers).To(HaveLen(1))
	g.Expect(providers[0].Cluster.Server).To(Equal(member.Config().Host))
	g.Expect(string(providers[0].Cluster.Extensions[0].Extension.Raw)).To(MatchJSON(`{"namespace":"default","name":"eu-kubeconfig","key":"value"}`))
	text, err := json.Marshal(p)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).NotTo(ContainSubstring(member.AdminToken()))
	g.Eventually(func() string { return inventory.HealthOf(profile()).String() }).Should(Equal("Healthy (Available)"), "the health of the control plane")
	e.status("v1beta2", "eu", "default", initialized(condition("ControlPlaneAvailable", "False", "NotAvailable")))
	g.Eventually(func() string { return inventory.HealthOf(profile()).String() }).ShouldNot(HavePrefix("Healthy"))
	e.Works(t, eu, member)
}

func TestWaysToStart(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(t *testing.T, e *env, ctx context.Context) (wait func())
	}{
		{"by the manager alone", func(*testing.T, *env, context.Context) func() { return nil }},
		{"with SetupWithManager before", func(t *testing.T, e *env, _ context.Context) func() {
			for range 2 {
				NewWithT(t).Expect(e.provider.SetupWithManager(e.mgr)).To(Succeed())
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
			e := &env{t: t, hub: newHub(t), provider: clusterapi.New(clusterapi.Options{Connection: providertest.Quick()})}
			e.newManager()
			ctx, cancel := context.WithCancel(t.Context())
			wait := test.set(t, e, ctx)
			stop := mctest.StartManager(t, e.mgr)
			member := mctest.New(t)
			e.create("default", "eu", member.Config())
			e.Works(t, eu, member)
			g.Expect(e.provider.SetupWithManager(e.mgr)).To(Succeed(), "after the start")
			for _, name := range []string{"eu", "unknown"} {
				result, err := e.provider.Reconcile(ctx, ctrl.Request{NamespacedName: inventory.Key{Namespace: "default", Name: name}})
				g.Expect(result, err).To(BeZero())
			}
			e.Works(t, eu, member)
			g.Expect(e.Engagements(eu)).To(Equal(1))
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
	e := newEnv(t, func(o *clusterapi.Options) { o.Namespace = "default" })
	other := clusterapi.New(clusterapi.Options{Namespace: "kube-public", Connection: providertest.Quick()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- other.Run(ctx, e.mgr) }() // not the manager's provider
	first, second := mctest.New(t), mctest.New(t)
	e.create("default", "eu", first.Config())
	e.create("kube-public", "us", second.Config())
	providertest.AwaitReady(t, e.provider, eu)
	providertest.AwaitReady(t, other, "kube-public/us")
	g.Expect(e.provider.Status()).To(HaveLen(1))
	g.Expect(other.Status()).To(HaveLen(1))
	cancel()
	g.Expect(<-ended).To(Succeed())
	e.Works(t, eu, first)
}

func TestFilesOfKubeconfigs(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "token")
	write := func(content string) {
		t.Helper()
		g.Expect(os.WriteFile(file+".next", []byte(content), 0o600)).To(Succeed())
		g.Expect(os.Rename(file+".next", file)).To(Succeed())
	}
	e := newEnv(t, func(o *clusterapi.Options) { o.Kubeconfig.AllowPaths = true })
	member := mctest.New(t)
	member.AddToken("one", "controller")
	member.AddToken("two", "controller")
	write("one")
	e.create("default", "eu", &rest.Config{})
	config := providertest.Config(member.Config())
	config.AuthInfos["main"] = &clientcmdapi.AuthInfo{TokenFile: file}
	e.set(providertest.Encode(t, config))
	e.Works(t, eu, member)
	write("two")
	providertest.Await(t, "the token of the file is used", func() bool { return e.token() == "two" })
	member.RevokeToken("one")
	e.Works(t, eu, member)
	g.Expect(e.Engagements(eu)).To(Equal(1))
}

func TestInvalidOptions(t *testing.T) {
	g := NewWithT(t)
	mgr, err := mcmanager.New(mctest.New(t).Config(), nil, mctest.ManagerOptions())
	g.Expect(err).NotTo(HaveOccurred())
	create := func(context.Context, *inventory.Profile, *rest.Config, ...cluster.Option) (cluster.Cluster, error) {
		return nil, nil
	}
	p := clusterapi.New(clusterapi.Options{NewCluster: newTypedCluster(nil), Connection: fleet.ConnectionOptions{NewCluster: create}})
	want := MatchError("cluster API provider: set either Options.NewCluster or Options.Connection.NewCluster")
	g.Expect(p.SetupWithManager(mgr)).To(want)
	g.Expect(p.Start(t.Context(), mgr)).To(want)
	_, err = p.Get(t.Context(), eu)
	g.Expect(err).To(MatchError(multicluster.ErrClusterNotFound))

	p = clusterapi.New(clusterapi.Options{ObjectToWatch: &unregistered{}})
	g.Expect(p.SetupWithManager(mgr)).To(MatchError("cluster API provider: Options.ObjectToWatch: *clusterapi_test.unregistered is not in the scheme of the manager"))
	g.Expect(clusterapi.New(clusterapi.Options{}).Start(t.Context(), noAware{})).To(
		MatchError("cluster API provider: no management cluster: set Options.Hub or call SetupWithManager"))
	g.Expect(clusterapi.New(clusterapi.Options{}).SetupWithManager(nil)).To(MatchError(ContainSubstring("must not be nil")))
}
