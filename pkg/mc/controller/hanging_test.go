// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// widgetsPath is the discovery path for widgets.
const widgetsPath = "/apis/example.org/v1"

// groupMapper asks the API server for the group of widgets each time, without a
// lock.
type groupMapper struct {
	meta.RESTMapper
	config *rest.Config
	client *http.Client
	asked  *atomic.Int32
}

func (m *groupMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if kind.Group == "example.org" {
		m.asked.Add(1)
		response, err := m.client.Get(m.config.Host + widgetsPath)
		if err != nil {
			return nil, err
		}
		if err := response.Body.Close(); err != nil {
			return nil, err
		}
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// askingForWidgets gives a cluster a groupMapper.
func askingForWidgets(asked *atomic.Int32) cluster.Option {
	return func(o *cluster.Options) {
		o.MapperProvider = func(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
			mapper, err := apiutil.NewDynamicRESTMapper(config, client)
			return &groupMapper{RESTMapper: mapper, config: config, client: client, asked: asked}, err
		}
	}
}

// serving returns a server with a ConfigMap and a widget.
func serving(t *testing.T) *mctest.Cluster {
	t.Helper()
	server := mctest.New(t)
	for _, obj := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "config"}}, widgets(), widget("a"),
	} {
		if err := server.Create(obj); err != nil {
			t.Fatal(err)
		}
	}
	return server
}

func TestDiscoveryOfOneKindHangs(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute)
	server, asked := serving(t), &atomic.Int32{}
	cl := connect(t, server, askingForWidgets(asked))
	answer := server.Fault(mctest.Hang.On(widgetsPath))
	waits, goes := &recorder{}, &recorder{}
	first, second := newController(t, waits, mccontroller.Options{}), newController(t, goes, mccontroller.Options{})
	g.Expect(first.MultiClusterWatch(kindSource(widget("")))).To(Succeed())
	g.Expect(second.MultiClusterWatch(kindSource(&corev1.ConfigMap{}))).To(Succeed())
	start(t, first)
	start(t, second)

	g.Expect(first.Engage(t.Context(), "eu", cl)).To(Succeed())
	g.Eventually(asked.Load).Should(BeEquivalentTo(1))
	g.Expect(second.Engage(t.Context(), "eu", cl)).To(Succeed())
	g.Eventually(goes.seen).Should(ConsistOf("eu/config"))
	g.Expect(waits.seen()).To(BeEmpty())

	answer()
	g.Eventually(waits.seen).Should(ConsistOf("eu/a"))
}

// countingSource counts how often it is started.
type countingSource struct {
	mcsource.Source
	starts atomic.Int32
}

func (s *countingSource) ForCluster(name multicluster.ClusterName, cl cluster.Cluster) (source.TypedSource[mcreconcile.Request], bool, error) {
	s.starts.Add(1)
	return s.Source.ForCluster(name, cl)
}

func TestRetriesDoNotPileUp(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute)
	running := goleak.IgnoreCurrent()
	t.Run("while it hangs", func(t *testing.T) {
		server, asked := serving(t), &atomic.Int32{}
		cl := connect(t, server, askingForWidgets(asked))
		server.Fault(mctest.Hang.On(widgetsPath))
		c := newController(t, &recorder{}, mccontroller.Options{CacheSyncTimeout: time.Second})
		src := &countingSource{Source: kindSource(widget(""))}
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", cl)).To(Succeed())
		g.Eventually(src.starts.Load).Should(BeNumerically(">=", 3))
		g.Expect(asked.Load()).To(BeEquivalentTo(1))
	})
	// The server has closed its connections. The mapper's client fails after some
	// retries.
	g.Eventually(func() error { return goleak.Find(running) }).Should(Succeed())
}
