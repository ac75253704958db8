// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/rollcall-dev/rollcall/pkg/mc/fleet"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
)

// connectAll returns all clusters of a fleet when they are engaged.
func connectAll(t *testing.T, f *mctest.Fleet, change ...func(*fleet.Options)) (*testEnv, []cluster.Cluster) {
	t.Helper()
	g := NewWithT(t)
	env := start(t, f.Clusters(), change...)
	clusters := make([]cluster.Cluster, f.Len())
	for i, c := range f.Clusters() {
		env.source.put(profile(fmt.Sprint(i), c.Config().Host))
	}
	for i := range clusters {
		name := multicluster.ClusterName(fmt.Sprintf("fleet/%d", i))
		g.Eventually(env.state(name)).Should(Equal(fleet.Ready))
		cl, err := env.Get(t.Context(), name)
		g.Expect(err).NotTo(HaveOccurred())
		clusters[i] = cl
	}
	return env, clusters
}

func widgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = "widgets.example.com"
	d.Spec.Group = "example.com"
	d.Spec.Scope = apiextensionsv1.NamespaceScoped
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve},
		},
	}}
	return d
}

func TestNewKindInOneCluster(t *testing.T) {
	g := NewWithT(t)
	f := mctest.NewFleet(t, 3)
	_, clusters := connectAll(t, f)
	list := func(i int) error {
		widgets := &unstructured.UnstructuredList{}
		widgets.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "WidgetList"})
		return clusters[i].GetAPIReader().List(t.Context(), widgets)
	}
	for i := range clusters {
		g.Expect(list(i)).To(Satisfy(meta.IsNoMatchError))
	}
	others := f.Cluster(0).Requests("get", "/apis") + f.Cluster(2).Requests("get", "/apis")

	g.Expect(f.Cluster(1).Create(widgetDefinition())).To(Succeed())
	g.Expect(list(1)).To(Succeed())
	g.Expect(f.Cluster(0).Requests("get", "/apis")+f.Cluster(2).Requests("get", "/apis")).To(Equal(others), "no request to the other clusters")
	g.Expect(list(0)).To(Satisfy(meta.IsNoMatchError))
	g.Expect(list(2)).To(Satisfy(meta.IsNoMatchError))
}

func TestOwnRESTMapper(t *testing.T) {
	g := NewWithT(t)
	mapper := meta.NewDefaultRESTMapper(nil)
	_, clusters := connectAll(t, mctest.NewFleet(t, 1), func(o *fleet.Options) {
		o.Connection.ClusterOptions = append(o.Connection.ClusterOptions, func(o *cluster.Options) {
			o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil }
		})
	})
	g.Expect(clusters[0].GetRESTMapper()).To(BeIdenticalTo(mapper))
}

func TestRESTMappersAreShared(t *testing.T) {
	g := NewWithT(t)
	const n = 30
	shared := heapPerCluster(t, n)
	own := heapPerCluster(t, n, func(o *fleet.Options) {
		o.Connection.ClusterOptions = append(o.Connection.ClusterOptions, func(o *cluster.Options) { o.MapperProvider = apiutil.NewDynamicRESTMapper })
	})
	t.Logf("%d KiB per cluster with its API server; %d KiB without sharing", shared>>10, own>>10)
	g.Expect(float64(shared) / float64(own)).To(BeNumerically("<", 0.7))
}

// heapPerCluster returns how many bytes of heap one cluster uses after the first
// mapping, with its API server.
func heapPerCluster(t *testing.T, n int, change ...func(*fleet.Options)) int {
	t.Helper()
	before := liveHeap()
	f := mctest.NewFleet(t, n)
	env, clusters := connectAll(t, f, change...)
	for _, cl := range clusters {
		if _, err := cl.GetRESTMapper().RESTMapping(schema.GroupKind{Kind: "ConfigMap"}); err != nil {
			t.Fatal(err)
		}
	}
	heap := liveHeap() - before
	runtime.KeepAlive(clusters)
	env.stop()
	for _, c := range f.Clusters() {
		c.Close()
	}
	return heap / n
}

// liveHeap returns the size of the heap without garbage.
func liveHeap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
