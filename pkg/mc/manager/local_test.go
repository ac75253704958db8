// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	mcmanager "github.com/rollcall-dev/rollcall/pkg/mc/manager"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// fakeManager records the calls of its methods. It has none of the cluster's but
// GetScheme, so they panic.
type fakeManager struct {
	manager.Manager
	err    error // of Add
	logger logr.Logger
	scheme *runtime.Scheme
	calls  []string
	added  []manager.Runnable
}

func (m *fakeManager) called(method string) { m.calls = append(m.calls, method) }

func (m *fakeManager) Add(r manager.Runnable) error {
	m.called("Add")
	m.added = append(m.added, r)
	return m.err
}

func (m *fakeManager) Elected() <-chan struct{}         { m.called("Elected"); return nil }
func (m *fakeManager) Start(context.Context) error      { m.called("Start"); return nil }
func (m *fakeManager) GetWebhookServer() webhook.Server { m.called("GetWebhookServer"); return nil }
func (m *fakeManager) GetLogger() logr.Logger           { m.called("GetLogger"); return m.logger }

// GetScheme returns the scheme for the provider.
func (m *fakeManager) GetScheme() *runtime.Scheme { m.called("GetScheme"); return m.scheme }

func (m *fakeManager) GetControllerOptions() config.Controller {
	m.called("GetControllerOptions")
	return config.Controller{}
}

func (m *fakeManager) AddMetricsServerExtraHandler(string, http.Handler) error {
	m.called("AddMetricsServerExtraHandler")
	return nil
}

func (m *fakeManager) AddHealthzCheck(string, healthz.Checker) error {
	m.called("AddHealthzCheck")
	return nil
}

func (m *fakeManager) AddReadyzCheck(string, healthz.Checker) error {
	m.called("AddReadyzCheck")
	return nil
}

func (m *fakeManager) GetConverterRegistry() conversion.Registry {
	m.called("GetConverterRegistry")
	return nil
}

// call calls a method with zero values.
func call(receiver any, method string) {
	m := reflect.ValueOf(receiver).MethodByName(method)
	args := make([]reflect.Value, m.Type().NumIn())
	for i := range args {
		args[i] = reflect.Zero(m.Type().In(i))
	}
	m.Call(args)
}

func wrap(t *testing.T, local manager.Manager, provider multicluster.Provider, opts ...mcmanager.Option) mcmanager.Manager {
	t.Helper()
	mgr, err := mcmanager.WithMultiCluster(local, provider, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// methods returns the methods of one interface that another one lacks.
func methods(of, without reflect.Type) []string {
	var names []string
	for m := range of.Methods() {
		if _, ok := without.MethodByName(m.Name); !ok {
			names = append(names, m.Name)
		}
	}
	return names
}

func TestScopedManagerUsesTheCluster(t *testing.T) {
	forCluster := methods(reflect.TypeFor[cluster.Cluster](), reflect.TypeFor[manager.Runnable]())
	NewWithT(t).Expect(forCluster).To(HaveLen(10))
	for _, method := range forCluster {
		t.Run(method, func(t *testing.T) {
			g := NewWithT(t)
			eu, local := &member{}, &fakeManager{}
			mgr := wrap(t, local, &provider{clusters: map[multicluster.ClusterName]cluster.Cluster{"eu": eu}})
			scoped, err := mgr.GetManager(t.Context(), "eu")
			g.Expect(err).NotTo(HaveOccurred())
			call(scoped, method) // panics if it reaches the local cluster
			g.Expect(eu.calls).To(Equal([]string{method}))
			g.Expect(local.calls).To(BeEmpty())
		})
	}
}

func TestScopedManagerUsesTheLocalManager(t *testing.T) {
	for _, method := range append(methods(reflect.TypeFor[manager.Manager](), reflect.TypeFor[cluster.Cluster]()), "Start") {
		t.Run(method, func(t *testing.T) {
			g := NewWithT(t)
			eu, local := &member{}, &fakeManager{}
			mgr := wrap(t, local, &provider{clusters: map[multicluster.ClusterName]cluster.Cluster{"eu": eu}})
			scoped, err := mgr.GetManager(t.Context(), "eu")
			g.Expect(err).NotTo(HaveOccurred())
			call(scoped, method)
			g.Expect(local.calls).To(Equal([]string{method}))
			g.Expect(eu.calls).To(BeEmpty())
		})
	}
}

func TestManagerUsesTheLocalManager(t *testing.T) {
	for _, method := range []string{
		"Elected", "AddMetricsServerExtraHandler", "AddHealthzCheck", "AddReadyzCheck", "Start",
		"GetWebhookServer", "GetLogger", "GetControllerOptions",
	} {
		t.Run(method, func(t *testing.T) {
			local := &fakeManager{}
			call(wrap(t, local, nil), method)
			NewWithT(t).Expect(local.calls).To(Equal([]string{method}))
		})
	}
	t.Run("GetLocalManager", func(t *testing.T) {
		local := &fakeManager{}
		NewWithT(t).Expect(wrap(t, local, nil).GetLocalManager()).To(BeIdenticalTo(local))
	})
}

// coordinator records the calls of its methods.
type coordinator struct {
	runnable manager.Runnable
	aware    []multicluster.Aware
	engaged  []multicluster.ClusterName
}

func (c *coordinator) AddAware(a multicluster.Aware) { c.aware = append(c.aware, a) }
func (c *coordinator) Runnable() manager.Runnable    { return c.runnable }

func (c *coordinator) Engage(_ context.Context, name multicluster.ClusterName, _ cluster.Cluster) error {
	c.engaged = append(c.engaged, name)
	return nil
}

func TestWithCoordinator(t *testing.T) {
	g := NewWithT(t)
	local, comp := &fakeManager{}, &component{}
	c := &coordinator{runnable: &component{}}
	mgr := wrap(t, local, nil, mcmanager.WithCoordinator(c))
	g.Expect(local.added).To(ConsistOf(BeIdenticalTo(c.runnable)), "its Runnable")
	g.Expect(mgr.Add(comp)).To(Succeed())
	g.Expect(local.added).To(ContainElement(BeIdenticalTo(comp)))
	g.Expect(c.aware).To(ConsistOf(BeIdenticalTo(comp)))
	g.Expect(mgr.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
	g.Expect(c.engaged).To(ConsistOf(multicluster.ClusterName("eu")))
	g.Expect(comp.engagements()).To(BeEmpty(), "the coordinator has not engaged it")
}

func TestErrorsOfTheLocalManager(t *testing.T) {
	failure := errors.New("too late")
	for _, tc := range []struct {
		name     string
		provider multicluster.Provider
		opts     []mcmanager.Option
		want     string
	}{
		{"the provider", &runningProvider{}, nil, "cannot add the provider: too late"},
		{"the coordinator", nil, []mcmanager.Option{mcmanager.WithCoordinator(&coordinator{runnable: &component{}})}, "cannot add the coordinator: too late"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			mgr, err := mcmanager.WithMultiCluster(&fakeManager{err: failure}, tc.provider, tc.opts...)
			g.Expect(err).To(And(MatchError(failure), MatchError(tc.want)))
			g.Expect(mgr).To(BeNil())
		})
	}
	t.Run("a component", func(t *testing.T) {
		g := NewWithT(t)
		c := &coordinator{}
		mgr := wrap(t, &fakeManager{err: failure}, &provider{}, mcmanager.WithCoordinator(c))
		g.Expect(mgr.Add(&component{})).To(MatchError(failure))
		g.Expect(c.aware).To(BeEmpty(), "not engaged")
	})
}
