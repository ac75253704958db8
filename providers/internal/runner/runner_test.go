// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/rollcall-dev/rollcall/pkg/credentials"
	"github.com/rollcall-dev/rollcall/pkg/inventory"
	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	clusterinventoryapi "github.com/rollcall-dev/rollcall/providers/cluster-inventory-api"
	"github.com/rollcall-dev/rollcall/providers/clusters"
	"github.com/rollcall-dev/rollcall/providers/internal/providertest"
	"github.com/rollcall-dev/rollcall/providers/multi"
	"github.com/rollcall-dev/rollcall/providers/namespace"
	"github.com/rollcall-dev/rollcall/providers/nop"
	"github.com/rollcall-dev/rollcall/providers/single"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// provider is what all providers have.
type provider interface {
	multicluster.Provider
	multicluster.ProviderRunnable
	ClusterNames() []multicluster.ClusterName
	Run(ctx context.Context, mgr mcmanager.Manager) error
}

// env is a hub with one member.
type env struct {
	t           *testing.T
	hub, member *mctest.Cluster
	unmanaged   []cluster.Cluster // run by the manager
}

// cluster returns a cluster of the member.
func (e *env) cluster() cluster.Cluster {
	e.t.Helper()
	cl, err := cluster.New(e.member.Config())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(cl.GetHTTPClient().CloseIdleConnections)
	return cl
}

// withManager returns a cluster of the member that the manager runs.
func (e *env) withManager() cluster.Cluster {
	cl := e.cluster()
	e.unmanaged = append(e.unmanaged, cl)
	return cl
}

// newHub returns a hub with two profiles.
func newHub(t *testing.T) *mctest.Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := mctest.New(t, mctest.Options{Scheme: scheme})
	for _, namespace := range []string{"default", "kube-public"} {
		profile := &inventory.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "eu"}}
		if err := hub.Create(profile); err != nil {
			t.Fatal(err)
		}
	}
	return hub
}

// method connects all profiles to the member.
type method struct{ member *mctest.Cluster }

func (m method) Resolve(context.Context, *inventory.Profile) (*credentials.Access, error) {
	return credentials.FromRESTConfig(m.member.Config()), nil
}

// providers make the i-th provider of a kind, and the name of its only cluster, if any.
var providers = []struct {
	name string
	make func(e *env, i int) (provider, multicluster.ClusterName)
}{
	{"clusters", func(e *env, i int) (provider, multicluster.ClusterName) {
		p, name := clusters.New(), []multicluster.ClusterName{"eu", "us"}[i]
		if err := p.Add(e.t.Context(), name, e.cluster()); err != nil {
			e.t.Fatal(err)
		}
		return p, name
	}},
	{"cluster-inventory-api", func(e *env, i int) (provider, multicluster.ClusterName) {
		namespace := []string{"default", "kube-public"}[i]
		p, err := clusterinventoryapi.New(clusterinventoryapi.Options{
			Namespace: namespace, Credentials: method{e.member}, IsReady: func(context.Context, *inventory.Profile) bool { return true },
		})
		if err != nil {
			e.t.Fatal(err)
		}
		return p, multicluster.ClusterName(namespace + "/eu")
	}},
	{"namespace", func(e *env, i int) (provider, multicluster.ClusterName) {
		name := []string{"default", "kube-public"}[i]
		selector := labels.SelectorFromSet(labels.Set{corev1.LabelMetadataName: name})
		return namespace.NewWithOptions(e.withManager(), namespace.Options{Selector: selector}), multicluster.ClusterName(name)
	}},
	{"single", func(e *env, i int) (provider, multicluster.ClusterName) {
		name := []multicluster.ClusterName{"eu", "us"}[i]
		return single.New(name, e.withManager()), name
	}},
	{"multi", func(e *env, i int) (provider, multicluster.ClusterName) {
		p, name := multi.New(multi.Options{}), []string{"eu", "us"}[i]
		if err := p.AddProvider(name, single.New("home", e.withManager())); err != nil {
			e.t.Fatal(err)
		}
		return p, multicluster.ClusterName(name + "#home")
	}},
	{"nop", func(*env, int) (provider, multicluster.ClusterName) { return nop.New(), "" }},
}

// newManager returns a manager of a provider that runs the clusters of the environment.
func newManager(t *testing.T, e *env, p multicluster.Provider) (mcmanager.Manager, *providertest.Recorder) {
	t.Helper()
	mgr, err := mcmanager.New(e.hub.Config(), p, mctest.ManagerOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, cl := range e.unmanaged {
		if err := mgr.GetLocalManager().Add(cl); err != nil {
			t.Fatal(err)
		}
	}
	return mgr, providertest.Record(t, mgr)
}

// run calls Run until the function is called.
func run(t *testing.T, p provider, mgr mcmanager.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx, mgr) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestRunForProviderOfManager(t *testing.T) {
	for _, test := range providers {
		t.Run(test.name, func(t *testing.T) {
			e := &env{t: t, hub: newHub(t), member: mctest.New(t)}
			p, name := test.make(e, 0)
			mgr, recorder := newManager(t, e, p)
			stop := run(t, p, mgr) // before the manager starts
			mctest.StartManager(t, mgr)
			if name != "" {
				providertest.Await(t, "the cluster is engaged", func() bool { return recorder.Engagements(name) == 1 })
			}
			stop()
			if name != "" { // the manager goes on
				recorder.Works(t, name, e.member)
			}
		})
	}
}

func TestSeveralProvidersWithRun(t *testing.T) {
	for _, test := range providers {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			e := &env{t: t, hub: newHub(t), member: mctest.New(t)}
			var all [2]provider
			var names [2]multicluster.ClusterName
			for i := range all {
				all[i], names[i] = test.make(e, i)
			}
			mgr, recorder := newManager(t, e, nop.New())
			mctest.StartManager(t, mgr)
			var stops []func()
			for i, p := range all {
				stops = append(stops, run(t, p, mgr))
				if names[i] != "" {
					providertest.Await(t, "the cluster is engaged", func() bool { return recorder.Engagements(names[i]) == 1 })
					g.Expect(p.ClusterNames()).To(ConsistOf(names[i]))
				}
			}
			stops[0]()
			g.Expect(all[0].ClusterNames()).To(BeEmpty())
			if names[1] != "" {
				g.Expect(all[1].ClusterNames()).To(ConsistOf(names[1]))
			}
			stops[1]()
			g.Expect(all[1].Run(t.Context(), nil)).To(MatchError(ContainSubstring("must not be nil")))
		})
	}
}
