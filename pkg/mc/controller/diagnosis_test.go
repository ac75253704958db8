// Copyright The Rollcall Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mccontroller "github.com/rollcall-dev/rollcall/pkg/mc/controller"
	mchandler "github.com/rollcall-dev/rollcall/pkg/mc/handler"
	"github.com/rollcall-dev/rollcall/pkg/mc/mctest"
	"github.com/rollcall-dev/rollcall/pkg/mc/multicluster"
	mcreconcile "github.com/rollcall-dev/rollcall/pkg/mc/reconcile"
	mcsource "github.com/rollcall-dev/rollcall/pkg/mc/source"
)

// diagnosedSource reports the reasons that a test sends.
type diagnosedSource struct {
	*fakeSource
	reasons chan error
}

func (s *diagnosedSource) ForCluster(name multicluster.ClusterName, cl cluster.Cluster) (source.TypedSource[mcreconcile.Request], bool, error) {
	forCluster, watched, err := s.fakeSource.ForCluster(name, cl)
	return &diagnosedClusterSource{forCluster.(*fakeClusterSource), s}, watched, err
}

type diagnosedClusterSource struct {
	*fakeClusterSource
	parent *diagnosedSource
}

func (s *diagnosedClusterSource) Diagnose(ctx context.Context, report func(error)) {
	for {
		select {
		case <-ctx.Done():
			time.Sleep(time.Millisecond)
			report(errors.New("too late"))
			return
		case err := <-s.parent.reasons:
			report(err)
		}
	}
}

func TestDiagnosisIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		rec := &recorder{}
		c := newController(t, rec, mccontroller.Options{CacheSyncTimeout: time.Minute})
		src := &diagnosedSource{newFakeSource("a"), make(chan error)}
		src.unsynced("eu")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		limit := newLimit(1)
		g.Expect(c.Engage(limited(t.Context(), limit), "eu", &fakeCluster{})).To(Succeed())
		synctest.Wait()
		_, held := limit.count()
		g.Expect(held).To(Equal(1))

		src.reasons <- errors.New("forbidden")
		synctest.Wait()
		g.Expect(statusOf(c, "eu").LastError).To(Equal("forbidden"))
		_, held = limit.count()
		g.Expect(held).To(BeZero(), "released")
		src.reasons <- errors.New("gone")
		synctest.Wait()
		g.Expect(statusOf(c, "eu").LastError).To(Equal("gone"))

		time.Sleep(time.Minute + time.Second/2)
		synctest.Wait()
		g.Expect(statusOf(c, "eu").LastError).To(Equal("context deadline exceeded: gone"), "also in the error of the timeout")
		time.Sleep(2 * time.Second) // during the retry
		src.reasons <- errors.New("forbidden again")
		src.sync("eu")
		synctest.Wait()
		g.Expect(statusOf(c, "eu")).To(Equal(mccontroller.ClusterStatus{ClusterName: "eu"}))
		g.Expect(rec.seen()).To(Equal([]string{"eu/a"}))
		g.Expect(limit.released).To(Equal(2))
	})
}

func TestDiagnosisIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var logged lines
		c := newController(t, &recorder{}, mccontroller.Options{Logger: logged.logger()})
		src := &diagnosedSource{newFakeSource("a"), make(chan error)}
		src.unsynced("eu")
		g.Expect(c.MultiClusterWatch(src)).To(Succeed())
		start(t, c)
		g.Expect(c.Engage(t.Context(), "eu", &fakeCluster{})).To(Succeed())
		for _, reason := range []string{"forbidden", "forbidden", "gone", "forbidden"} {
			src.reasons <- errors.New(reason)
			synctest.Wait()
		}
		line := func(reason string) any {
			return And(HaveKeyWithValue("cluster", "eu"), HaveKeyWithValue("reason", reason))
		}
		g.Expect(logged.with("Cannot watch a kind in this cluster yet, the controller's requests for the cluster wait")).
			To(HaveExactElements(line("forbidden"), line("gone"), line("forbidden")))
	})
}

func TestMissingOrForbiddenKind(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute)
	lacks, forbids, has := mctest.New(t), mctest.New(t), mctest.New(t)
	for _, server := range []*mctest.Cluster{lacks, forbids, has} {
		g.Expect(server.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "config"}})).To(Succeed())
	}
	for _, server := range []*mctest.Cluster{forbids, has} {
		g.Expect(server.Create(widgets(), widget("a"))).To(Succeed())
	}
	grant := forbids.Fault(mctest.Forbidden.On("widgets"))

	both, other := &recorder{}, &recorder{}
	c, unaffected := newController(t, both, mccontroller.Options{}), newController(t, other, mccontroller.Options{})
	g.Expect(c.MultiClusterWatch(kindSource(widget("")))).To(Succeed())
	g.Expect(c.MultiClusterWatch(kindSource(&corev1.ConfigMap{}))).To(Succeed())
	g.Expect(unaffected.MultiClusterWatch(kindSource(&corev1.ConfigMap{}))).To(Succeed())
	start(t, c)
	start(t, unaffected)
	began := time.Now()
	for name, server := range map[multicluster.ClusterName]*mctest.Cluster{"lacks": lacks, "forbids": forbids, "has": has} {
		cl := connect(t, server)
		g.Expect(c.Engage(t.Context(), name, cl)).To(Succeed())
		g.Expect(unaffected.Engage(t.Context(), name, cl)).To(Succeed())
	}
	lastError := func(name multicluster.ClusterName) func() string {
		return func() string { return statusOf(c, name).LastError }
	}
	g.Eventually(lastError("lacks")).Should(ContainSubstring(`no matches for kind "Widget"`))
	t.Logf("missing: reported after %v", time.Since(began).Round(10*time.Millisecond))
	g.Eventually(lastError("forbids")).Should(And(ContainSubstring("forbidden"), ContainSubstring("widgets")))
	t.Logf("forbidden: reported after %v", time.Since(began).Round(10*time.Millisecond))
	g.Expect(time.Since(began)).To(BeNumerically("<", 20*time.Second))
	g.Expect(statusOf(c, "lacks").UnsyncedSources).To(Equal(1), "the other source has synced")
	g.Expect(statusOf(c, "forbids").UnsyncedSources).To(Equal(1))
	g.Expect(lastError("has")()).To(BeEmpty())
	g.Expect(both.seen()).To(ConsistOf("has/a", "has/config"), "the other cluster")
	g.Expect(other.seen()).To(ConsistOf("has/config", "lacks/config", "forbids/config"), "the other controller")

	granted := time.Now()
	grant()
	g.Expect(lacks.Create(widgets(), widget("a"))).To(Succeed())
	g.Eventually(both.seen).Should(ConsistOf("has/a", "has/config", "lacks/a", "lacks/config", "forbids/a", "forbids/config"))
	t.Logf("served: reconciled after %v", time.Since(granted).Round(10*time.Millisecond))
	for _, name := range []multicluster.ClusterName{"lacks", "forbids"} {
		g.Eventually(func() mccontroller.ClusterStatus { return statusOf(c, name) }).Should(Equal(mccontroller.ClusterStatus{ClusterName: name}))
	}
}

var widgetKind = schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}

// widget is an object of a kind that clusters serve once it is defined.
func widget(name string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(widgetKind)
	w.SetNamespace("default")
	w.SetName(name)
	return w
}

// widgets is the CustomResourceDefinition of that kind.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgetKind.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Widget", ListKind: "WidgetList", Plural: "widgets", Singular: "widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: widgetKind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

// kindSource watches a kind for the objects themselves.
func kindSource(obj client.Object) mcsource.Source {
	return mcsource.TypedKind(obj, mchandler.TypedEnqueueRequestForObject[client.Object]())
}

// connect runs a cluster on a server until the test ends.
func connect(t *testing.T, server *mctest.Cluster, opts ...cluster.Option) cluster.Cluster {
	t.Helper()
	cl, err := cluster.New(server.Config(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cl.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the cluster failed: %v", err)
		}
	})
	return cl
}
